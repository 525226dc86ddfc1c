"""Ports of nodes, and answers that come to name them: a node keeps its port, and nobody is sent where none listens."""

from typing import Any, Final

import pytest

from codec import decode_response, encode_response
from codec.api_keys import ApiKey
from codec.error_codes import ErrorCode
from codec.headers import ResponseHeader, encode_response_header, response_body_offset
from sidecar.core.addresses import NodePorts, PortsExhausted
from sidecar.core.answers import read_answer, throttle_time_ms
from sidecar.core.apis import GATED_READS
from sidecar.core.ids import NodeId

FIND_COORDINATOR, METADATA = ApiKey.FIND_COORDINATOR, ApiKey.METADATA
UNAVAILABLE: Final = int(ErrorCode.COORDINATOR_NOT_AVAILABLE)


def ports(*node_ids: int, last: int = 19104, **more: Any) -> NodePorts:
    found = NodePorts(19101, last, advertised_host="sidecar", **more)
    found.assign(map(NodeId, node_ids))
    return found


def answer(key: int, version: int, value: dict[str, Any]) -> bytes:
    header = encode_response_header(ResponseHeader(correlation_id=7), key, version)
    return header + encode_response(key, version, value)


def rewritten(key: int, version: int, value: dict[str, Any], at: NodePorts) -> dict[str, Any]:
    payload = read_answer(answer(key, version, value), key, version, at).payload
    return decode_response(key, version, payload, response_body_offset(payload, key, version))


def broker(node_id: int) -> dict[str, Any]:
    return {"node_id": node_id, "host": f"kafka-{node_id}", "port": 9092, "rack": None}


@pytest.mark.row("2.2")
def test_a_node_takes_its_own_port_or_the_next_free_one_in_the_order_of_ids() -> None:
    assert dict(ports(1, 2, 4).assigned) == {1: 19101, 2: 19102, 4: 19104}
    assert dict(ports(1001, 7, 2).assigned) == {2: 19102, 7: 19101, 1001: 19103}
    assert dict(ports(1001, 7, 2).assigned) == dict(ports(2, 7, 1001).assigned)


@pytest.mark.row("2.2")
def test_a_port_is_never_given_to_another_node() -> None:
    found = ports(1, 2, remembered={NodeId(9): 19101, NodeId(8): 18000})
    assert dict(found.assigned) == {9: 19101, 1: 19102, 2: 19103}
    assert found.assign(map(NodeId, (1, 2, 9))) == {}
    assert found.assign([NodeId(5)]) == {5: 19104}
    with pytest.raises(PortsExhausted):
        found.assign([NodeId(6)])
    assert found.port(NodeId(6)) is None


@pytest.mark.row("2.2")
@pytest.mark.parametrize("version", [0, 9, 12, 13])
def test_a_broker_without_a_port_is_left_out_but_never_the_last(version: int) -> None:
    value = {"brokers": [broker(1), broker(9)], "topics": [], "controller_id": 1, "cluster_id": "c"}
    found = rewritten(METADATA, version, value, ports(1))["brokers"]
    assert [(b["node_id"], b["host"], b["port"]) for b in found] == [(1, "sidecar", 19101)]
    with pytest.raises(PortsExhausted):
        rewritten(METADATA, version, value, ports(5))


@pytest.mark.row("1")
@pytest.mark.row("2.2")
@pytest.mark.parametrize("version", [0, 3, 4, 6])
def test_coordinators(version: int) -> None:
    def found(node_id: int, port: int) -> dict[str, Any]:
        one = {"node_id": node_id, "host": "kafka", "port": port, "error_code": 0, "error_message": None, "key": "k"}
        body = rewritten(FIND_COORDINATOR, version, {**one, "coordinators": [one]}, ports(1))
        return dict(body["coordinators"][0]) if version >= 4 else body

    here, none, portless = found(1, 9092), found(-1, -1), found(9, 9092)
    assert (here["node_id"], here["host"], here["port"]) == (1, "sidecar", 19101)
    assert (none["node_id"], none["host"], none["port"], none["error_code"]) == (-1, "kafka", -1, 0)
    assert (portless["node_id"], portless["port"]) == (-1, -1)
    if version >= 4:
        assert portless["error_code"] == UNAVAILABLE


@pytest.mark.row("1")
def test_controllers_keep_their_addresses() -> None:
    one = {"broker_id": 1, "host": "controller", "port": 9093, "rack": None, "is_fenced": False}
    for endpoint_type, host in ((1, "sidecar"), (2, "controller")):
        value = {"cluster_id": "c", "controller_id": 1, "brokers": [one], "endpoint_type": endpoint_type}
        assert rewritten(ApiKey.DESCRIBE_CLUSTER, 1, value, ports(1))["brokers"][0]["host"] == host


@pytest.mark.row("2.5")
def test_what_clients_are_told_is_not_where_the_sidecar_listens() -> None:
    mapped = NodePorts(19101, 19104, advertised_host="2001:db8::7", advertised_first=30001)
    mapped.assign([NodeId(2)])
    assert (mapped.port(NodeId(2)), mapped.advertised(NodeId(2))) == (19102, ("2001:db8::7", 30002))
    value = {"brokers": [broker(2)], "topics": [], "controller_id": 2, "cluster_id": "c"}
    (found,) = rewritten(METADATA, 12, value, mapped)["brokers"]
    assert (found["host"], found["port"]) == ("2001:db8::7", 30002), "bare: brackets are for URLs"


@pytest.mark.row("3.9")
@pytest.mark.parametrize("key", sorted(GATED_READS))
def test_the_throttle_time_of_every_gated_read_is_found(key: int) -> None:
    for version in {METADATA: (3, 12, 13), ApiKey.DESCRIBE_ACLS: (1, 3)}.get(ApiKey(key), (0,)):
        payload = answer(key, 1 if key == ApiKey.DESCRIBE_ACLS else version, {"throttle_time_ms": 77})
        assert throttle_time_ms(payload, key, 1 if key == ApiKey.DESCRIBE_ACLS else version) == 77
    assert throttle_time_ms(b"", METADATA, 2) == 0
