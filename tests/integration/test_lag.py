"""`tidegate lag` and the logins of our own connections, against real Kafka and without any sidecar."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from tests.support.kafka import KafkaCluster

pytestmark = pytest.mark.kafka

SCRIPT: Final = Path(sys.executable).with_name("tidegate")
TIMEOUT_S: Final = 60.0
SCRAM: Final = {
    "SCRAM-SHA-256": ScramMechanism.SCRAM_SHA_256,
    "SCRAM-SHA-512": ScramMechanism.SCRAM_SHA_512,
}
DESCRIBE_CLUSTER: Final = (
    ResourceType.BROKER,  # librdkafka's name for the cluster resource
    "kafka-cluster",
    ResourcePatternType.LITERAL,
    "User:somebody-else",
    "*",
    AclOperation.DESCRIBE,
    AclPermissionType.ALLOW,
)


def run(servers: object, *options: str | Path) -> subprocess.CompletedProcess[str]:
    command = [SCRIPT, "lag", "--bootstrap", str(servers), *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)


def look(servers: object, *options: str | Path) -> dict[str, Any]:
    """What `--json` prints; the command must succeed and say nothing else."""
    result = run(servers, "--json", *options)
    assert (result.returncode, result.stderr) == (0, "")
    found = json.loads(result.stdout)
    assert isinstance(found, dict)
    return found


def look_until(servers: object, done: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """The first look for which ``done`` holds; heads and positions move on by themselves."""
    deadline_s = time.monotonic() + TIMEOUT_S
    while not done(found := look(servers)):
        assert time.monotonic() < deadline_s, f"last look: {found}"
    return found


def lags(found: dict[str, Any]) -> dict[int, int | None]:
    return {broker["node_id"]: broker["lag_records"] for broker in found["brokers"]}


@pytest.fixture
def admin(kafka: KafkaCluster) -> AdminClient:
    return AdminClient({"bootstrap.servers": kafka.bootstrap})


@pytest.fixture
def login(tmp_path: Path) -> Callable[[str, str, str], Path]:
    """Writes a `--command-config` file: mechanism, user name, password."""

    def write(mechanism: str, username: str, password: str) -> Path:
        (tmp_path / "password").write_text(password)
        file = tmp_path / "command.yaml"
        sasl = f"mechanism: {mechanism}, username: {username}, password_file: {tmp_path}/password"
        file.write_text(f"cluster:\n  security:\n    protocol: SASL_PLAINTEXT\n    sasl: {{{sasl}}}\n")
        return file

    return write


@pytest.fixture
def nobody_may_describe(kafka: KafkaCluster, admin: AdminClient) -> Iterator[None]:
    """Where a resource has an ACL, those whom it does not name may nothing; super users may everything."""
    for created in admin.create_acls([AclBinding(*DESCRIBE_CLUSTER)]).values():
        created.result(TIMEOUT_S)
    kafka.wait_caught_up(effective=True)
    yield
    for deleted in admin.delete_acls([AclBindingFilter(*DESCRIBE_CLUSTER)]).values():
        assert len(deleted.result(TIMEOUT_S)) == 1
    kafka.wait_caught_up(effective=True)


def test_head_and_positions_of_a_healthy_cluster(kafka: KafkaCluster) -> None:
    before = kafka.head()
    found = look_until(kafka.bootstrap, lambda found: set(lags(found).values()) == {0})
    assert set(found) == {"head", "brokers"}
    assert found["head"]["offset"] >= before.offset
    assert found["head"]["leader_epoch"] >= 1
    assert list(lags(found)) == sorted(kafka.brokers)
    for broker in found["brokers"]:
        assert set(broker) == {"node_id", "offset", "lag_records"}
        assert broker["offset"] >= found["head"]["offset"]


def test_a_broker_whose_feed_is_cut_lags_by_what_was_written(
    kafka: KafkaCluster, admin: AdminClient, topic_name: str
) -> None:
    kafka.pause_feed()
    admin.create_topics([NewTopic(topic_name, 3, 1)])[topic_name].result(TIMEOUT_S)
    late = kafka.lagging_broker

    def others_are_level(found: dict[str, Any]) -> bool:
        return all(lag == 0 for node_id, lag in lags(found).items() if node_id != late)

    # A topic and its three partitions are four records.
    found = look_until(kafka.bootstrap, lambda found: others_are_level(found) and (lags(found)[late] or 0) >= 4)
    position = next(broker["offset"] for broker in found["brokers"] if broker["node_id"] == late)
    assert lags(found)[late] == found["head"]["offset"] - position
    kafka.lag(0)
    look_until(kafka.bootstrap, lambda found: set(lags(found).values()) == {0})


def test_a_broker_that_is_down_is_named_with_the_reason(kafka: KafkaCluster) -> None:
    late = kafka.lagging_broker
    servers = next(address for node_id, address in kafka.brokers.items() if node_id != late)
    kafka.kill(late)
    # Its session lasts some seconds: until then the cluster names it.
    found = next(broker for broker in look(servers)["brokers"] if broker["node_id"] == late)
    assert found == {
        "node_id": late,
        "offset": None,
        "lag_records": None,
        "reason": "cannot connect: Connection refused",
    }


@pytest.mark.usefixtures("nobody_may_describe")
def test_without_privileges_positions_are_shown_and_the_head_is_not(
    kafka: KafkaCluster, login: Callable[[str, str, str], Path]
) -> None:
    found = look(kafka.sasl_bootstrap, "--command-config", login("PLAIN", "bob", "bob-secret"))
    assert found["head"] is None
    assert "CLUSTER_AUTHORIZATION_FAILED; the principal needs Describe on the cluster" in found["reason"]
    assert list(lags(found)) == sorted(kafka.brokers)
    assert set(lags(found).values()) == {None}
    assert all(broker["offset"] > 0 for broker in found["brokers"])
    assert look(kafka.sasl_bootstrap, "--command-config", login("PLAIN", "alice", "alice-secret"))["head"]


@pytest.mark.parametrize("mechanism", SCRAM)
def test_scram(kafka: KafkaCluster, admin: AdminClient, login: Callable[[str, str, str], Path], mechanism: str) -> None:
    username, password = f"user,of={mechanism}", "correct horse, battery=staple"
    credential = ScramCredentialInfo(SCRAM[mechanism], 8192)
    upsertion = UserScramCredentialUpsertion(username, credential, password.encode())
    admin.alter_user_scram_credentials([upsertion])[username].result(TIMEOUT_S)
    kafka.wait_caught_up(effective=True)

    found = look(kafka.sasl_bootstrap, "--command-config", login(mechanism, f'"{username}"', password))
    assert found["head"]["offset"] > 0
    assert None not in lags(found).values()

    result = run(kafka.sasl_brokers[1], "--command-config", login(mechanism, f'"{username}"', "wrong words"))
    assert (result.returncode, result.stdout) == (3, "")
    assert f"SASL {mechanism} login as '{username}' failed: " in result.stderr
    assert "wrong words" not in result.stderr


def test_a_wrong_password(kafka: KafkaCluster, login: Callable[[str, str, str], Path]) -> None:
    address = kafka.sasl_brokers[1]
    result = run(address, "--command-config", login("PLAIN", "alice", "wrong words"))
    assert (result.returncode, result.stdout) == (3, "")
    assert result.stderr == (
        f"tidegate lag: {address}: SASL PLAIN login as 'alice' failed: "
        "Authentication failed: Invalid username or password\n"
    )


def test_a_sasl_listener_without_credentials(kafka: KafkaCluster) -> None:
    result = run(kafka.sasl_brokers[1])
    assert (result.returncode, result.stdout) == (3, "")
    assert "as a listener does that demands a SASL login; give credentials in cluster.security" in result.stderr


def test_credentials_on_a_listener_without_sasl(kafka: KafkaCluster, login: Callable[[str, str, str], Path]) -> None:
    result = run(kafka.brokers[1], "--command-config", login("PLAIN", "alice", "alice-secret"))
    assert result.returncode == 3
    assert "this listener takes no login: set protocol PLAINTEXT, or use its SASL_PLAINTEXT port" in result.stderr


def test_the_port_of_a_controller(kafka: KafkaCluster) -> None:
    result = run(next(iter(kafka.controllers.values())))
    assert result.returncode == 3
    assert "a controller answers there; name the port of a broker" in result.stderr
