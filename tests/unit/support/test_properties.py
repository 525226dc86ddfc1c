"""The nodes' configuration: what every test counts on."""

from pathlib import Path

from tests.support.address import Address
from tests.support.kafka.properties import Layout, node_properties, render

LAYOUT = Layout(
    controllers={3001: Address("127.0.0.1", 1), 3002: Address("127.0.0.1", 2)},
    brokers={1: Address("127.0.0.1", 11), 2: Address("127.0.0.1", 12)},
    sasl_brokers={1: Address("127.0.0.1", 21), 2: Address("127.0.0.1", 22)},
    tls_brokers={1: Address("127.0.0.1", 41), 2: Address("127.0.0.1", 42)},
    sasl_tls_brokers={1: Address("127.0.0.1", 51), 2: Address("127.0.0.1", 52)},
    certificate=Path("/broker.pem"),
    authority=Path("/ca.pem"),
    relays={3001: Address("127.0.0.1", 31), 3002: Address("127.0.0.1", 32)},
)


def test_nobody_learns_a_controller_by_another_address_than_its_relay() -> None:
    for node_id in (3001, 3002, 1, 2):
        voters = node_properties(LAYOUT, node_id, Path("/data"))["controller.quorum.voters"]
        assert voters == "3001@127.0.0.1:31,3002@127.0.0.1:32"
    controller = node_properties(LAYOUT, 3002, Path("/data"))
    assert controller["listeners"] == "CONTROLLER://127.0.0.1:2"
    assert controller["advertised.listeners"] == "CONTROLLER://127.0.0.1:32"


def test_a_broker_has_open_and_authenticated_listeners_with_and_without_tls() -> None:
    broker = node_properties(LAYOUT, 2, Path("/data"))
    assert broker["advertised.listeners"] == (
        "PLAINTEXT://127.0.0.1:12,SASL://127.0.0.1:22,TLS://127.0.0.1:42,SASLTLS://127.0.0.1:52"
    )
    assert (broker["ssl.keystore.location"], broker["ssl.truststore.location"]) == ("/broker.pem", "/ca.pem")
    assert broker["sasl.enabled.mechanisms"] == "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512"
    assert broker["offsets.topic.replication.factor"] == 2


def test_a_property_file_has_a_line_for_each() -> None:
    assert render({"node.id": 1, "process.roles": "broker"}) == "node.id=1\nprocess.roles=broker\n"
