"""The harness itself, against real Kafka: every fault does what it says, and the next test finds nothing of it."""

import socket
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from kio.schema.api_versions.v3 import ApiVersionsResponse
from kio.schema.describe_quorum.v1 import DescribeQuorumResponse

from tests.support.kafka import KafkaCluster, KafkaHarnessError, offsets
from tests.support.raw_client import API_VERSIONS, RawClientError, ask_once

pytestmark = pytest.mark.kafka

CLUSTER_ID_JAVA = """
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;

public class ClusterId {
    public static void main(String[] args) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", args[0]))) {
            System.out.println(admin.describeCluster().clusterId().get());
        }
    }
}
"""


def create_topic(cluster: KafkaCluster, topic: str) -> None:
    done = cluster.tool(
        "org.apache.kafka.tools.TopicCommand", "--bootstrap-server", cluster.bootstrap, "--create", "--topic", topic
    )
    assert done.stdout.strip() == f"Created topic {topic}.", done.stderr


class Feed:
    """The same for every version; a subclass says which cluster."""

    def test_a_paused_feed_stops_one_broker_and_only_its_picture(self, cluster: KafkaCluster, topic_name: str) -> None:
        lagging = cluster.lagging_broker
        cluster.pause_feed()
        shown = cluster.image_offset(lagging)
        create_topic(cluster, topic_name)
        behind = cluster.head().offset
        cluster.wait_until(lambda: min(map(cluster.image_offset, (1, 2))) >= behind, "the other brokers lag too")
        # One answer may have been on its way when the feed was paused.
        assert shown <= cluster.image_offset(lagging) < behind
        assert offsets.known_brokers(cluster.brokers[1]) == set(cluster.brokers)
        cluster.lag(0)
        cluster.wait_caught_up()
        assert cluster.image_offset(lagging) >= behind

    def test_the_lag_survives_an_election(self, cluster: KafkaCluster) -> None:
        deposed = cluster.active_controller()
        cluster.kill(deposed)
        cluster.wait_until(lambda: cluster.active_controller() != deposed, "nobody was elected")
        cluster.start(deposed)
        cluster.wait_caught_up()
        cluster.pause_feed()
        behind = cluster.head().offset + 3
        cluster.wait_until(lambda: cluster.image_offset(1) >= behind, "broker 1 lags too")
        assert cluster.image_offset(cluster.lagging_broker) < behind


class TestFeedOnKafka44(Feed):
    @pytest.fixture
    def cluster(self, kafka: KafkaCluster) -> KafkaCluster:
        return kafka


class TestFeedOnKafka39(Feed):
    @pytest.fixture
    def cluster(self, kafka_39: KafkaCluster) -> KafkaCluster:
        return kafka_39


def test_a_killed_broker_comes_back_where_it_was(kafka: KafkaCluster) -> None:
    address = kafka.brokers[2]
    kafka.kill(2)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address, 5).close()
    kafka.start(2)
    kafka.wait_ready()
    assert ask_once(address, API_VERSIONS, ApiVersionsResponse).finalized_features_epoch > 0


def test_a_stopped_broker_keeps_its_port_and_says_nothing(kafka: KafkaCluster) -> None:
    kafka.stop(2)
    with pytest.raises(TimeoutError):
        ask_once(kafka.brokers[2], API_VERSIONS, ApiVersionsResponse, timeout_s=0.5)
    kafka.resume(2)
    assert ask_once(kafka.brokers[2], API_VERSIONS, ApiVersionsResponse).api_keys


def test_healing_restarts_what_was_killed_and_wakes_what_was_stopped(kafka: KafkaCluster) -> None:
    kafka.kill(3002)
    kafka.kill(1)
    kafka.stop(2)
    kafka.pause_feed()
    kafka.heal()
    for address in kafka.brokers.values():
        assert offsets.known_brokers(address) == set(kafka.brokers)


def test_a_deposed_leader_is_cut_from_all_but_one_broker(kafka: KafkaCluster) -> None:
    deposed = kafka.active_controller()
    voters = [node_id for node_id in kafka.controllers if node_id != deposed]
    kafka.cut([(node_id, deposed) for node_id in (*voters, 2, 3)])
    kafka.cut([(node_id, voter) for node_id in (deposed, 1) for voter in voters])

    def elected() -> bool:
        try:
            found = offsets.head(kafka.brokers[2])
        except (OSError, RawClientError):
            return False
        return found is not None and found.leader_id != deposed

    kafka.wait_until(elected, "the others elected nobody")
    kafka.heal()
    assert kafka.active_controller() != deposed


def test_a_held_controller_is_silent(kafka: KafkaCluster) -> None:
    active = kafka.active_controller()
    kafka.hold([(1, active)])
    with pytest.raises(TimeoutError):
        ask_once(kafka.brokers[1], offsets.DESCRIBE_QUORUM, DescribeQuorumResponse, timeout_s=0.5)


def test_a_node_that_cannot_start_says_why() -> None:
    with pytest.raises(KafkaHarnessError, match=r"node 1 ended with 1(?s:.*)num\.io\.threads"):
        KafkaCluster(controllers=1, brokers=1, node_overrides={1: {"num.io.threads": 0}})


def test_tools_read_standard_input(kafka: KafkaCluster, topic_name: str) -> None:
    create_topic(kafka, topic_name)
    servers = ("--bootstrap-server", kafka.bootstrap, "--topic", topic_name)
    produced = kafka.tool("org.apache.kafka.tools.ConsoleProducer", *servers, stdin="one\ntwo\n")
    assert produced.returncode == 0, produced.stderr
    consumed = kafka.tool(
        "org.apache.kafka.tools.consumer.ConsoleConsumer", *servers, "--from-beginning", "--max-messages", "2"
    )
    assert consumed.stdout.split() == ["one", "two"]


def test_a_scram_user_logs_in_once_it_has_credentials(kafka: KafkaCluster) -> None:
    done = kafka.tool(
        "org.apache.kafka.tools.ConfigCommand",
        *("--bootstrap-server", kafka.bootstrap, "--alter", "--entity-type", "users", "--entity-name", "carol"),
        *("--add-config", "SCRAM-SHA-512=[password=carol-secret]"),
    )
    assert done.returncode == 0, done.stderr
    kafka.wait_caught_up(effective=True)
    carol = AdminClient(
        {
            "bootstrap.servers": kafka.sasl_bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": "carol",
            "sasl.password": "carol-secret",
        }
    )
    assert len(carol.list_topics(timeout=30).brokers) == len(kafka.brokers)


def test_a_java_program_runs_against_the_cluster(kafka: KafkaCluster, tmp_path: Path) -> None:
    source = tmp_path / "ClusterId.java"
    source.write_text(CLUSTER_ID_JAVA)
    done = kafka.java(source, kafka.bootstrap)
    assert done.stdout.strip() == kafka.cluster_id, done.stderr
