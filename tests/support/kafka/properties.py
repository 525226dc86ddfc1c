"""The configuration of every node of a cluster, as plain dictionaries. Pure: opens nothing, starts nothing.

Sits between the cluster's layout (who is where) and the property files that Kafka reads. Four listeners a broker:
PLAINTEXT, whose anonymous clients are super users; SASL_PLAINTEXT with PLAIN and SCRAM; SSL, whose clients are who
their certificate says, or anonymous; SASL_SSL with PLAIN and OAUTHBEARER, whose tokens need no signature. Users of
PLAIN: alice, a super user, and bob, an ordinary one; each password is the name with `-secret` appended.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.support.address import Address

PLAIN_USERS = ("alice", "bob")
SUPER_USERS = "User:ANONYMOUS;User:alice;User:CN=tidegate"
TOKEN_SECRET = "delegation-token-secret"
MECHANISMS = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512"
INTERNAL_TOPIC_PARTITIONS = 4

Value = str | int


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Who listens where.

    Args:
        controllers: node id to the address of its CONTROLLER listener.
        brokers: node id to the address of its PLAINTEXT listener.
        sasl_brokers: node id to the address of its SASL_PLAINTEXT listener.
        tls_brokers: node id to the address of its SSL listener.
        sasl_tls_brokers: node id to the address of its SASL_SSL listener.
        certificate: PEM file with key and certificate of every broker.
        authority: PEM file with who signs certificates.
        relays: controller's node id to the address at which every node, that controller included, believes it to be.
    """

    controllers: Mapping[int, Address]
    brokers: Mapping[int, Address]
    sasl_brokers: Mapping[int, Address]
    tls_brokers: Mapping[int, Address]
    sasl_tls_brokers: Mapping[int, Address]
    certificate: Path
    authority: Path
    relays: Mapping[int, Address]

    @property
    def voters(self) -> str:
        """`controller.quorum.voters`."""
        return ",".join(f"{node_id}@{address}" for node_id, address in self.relays.items())


def node_properties(layout: Layout, node_id: int, data_dir: Path) -> dict[str, Value]:
    """The properties of one node before a test overrides any."""
    common: dict[str, Value] = {
        "node.id": node_id,
        "controller.quorum.voters": layout.voters,
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": (
            "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT,TLS:SSL,SASLTLS:SASL_SSL"
        ),
        "log.dirs": str(data_dir),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
        "super.users": SUPER_USERS,
        "delegation.token.secret.key": TOKEN_SECRET,
        "num.network.threads": 2,
        "num.io.threads": 4,
    }
    role = _broker(layout, node_id) if node_id in layout.brokers else _controller(layout, node_id)
    return common | role


def render(properties: Mapping[str, Value]) -> str:
    """A property file."""
    return "".join(f"{key}={value}\n" for key, value in properties.items())


def _controller(layout: Layout, node_id: int) -> dict[str, Value]:
    return {
        "process.roles": "controller",
        "listeners": f"CONTROLLER://{layout.controllers[node_id]}",
        "advertised.listeners": f"CONTROLLER://{layout.relays[node_id]}",
    }


def _broker(layout: Layout, node_id: int) -> dict[str, Value]:
    listeners = ",".join(
        (
            f"PLAINTEXT://{layout.brokers[node_id]}",
            f"SASL://{layout.sasl_brokers[node_id]}",
            f"TLS://{layout.tls_brokers[node_id]}",
            f"SASLTLS://{layout.sasl_tls_brokers[node_id]}",
        )
    )
    replicas = min(3, len(layout.brokers))
    users = " ".join(f'user_{name}="{name}-secret"' for name in PLAIN_USERS)
    return {
        "process.roles": "broker",
        "listeners": listeners,
        "advertised.listeners": listeners,
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": MECHANISMS,
        "listener.name.sasl.plain.sasl.jaas.config": (
            f"org.apache.kafka.common.security.plain.PlainLoginModule required {users};"
        ),
        "listener.name.sasl.scram-sha-256.sasl.jaas.config": (
            "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        ),
        "listener.name.sasl.scram-sha-512.sasl.jaas.config": (
            "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        ),
        "listener.name.sasltls.sasl.enabled.mechanisms": "PLAIN,OAUTHBEARER",
        "listener.name.sasltls.plain.sasl.jaas.config": (
            f"org.apache.kafka.common.security.plain.PlainLoginModule required {users};"
        ),
        "listener.name.sasltls.oauthbearer.sasl.jaas.config": (
            "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;"
        ),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(layout.certificate),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(layout.authority),
        "listener.name.tls.ssl.client.auth": "requested",
        # Lets a client log in anew on a live connection, and ends those that have not after an hour.
        "listener.name.sasl.plain.connections.max.reauth.ms": 3_600_000,
        "auto.create.topics.enable": "false",
        "group.initial.rebalance.delay.ms": 0,
        "offsets.topic.num.partitions": INTERNAL_TOPIC_PARTITIONS,
        "offsets.topic.replication.factor": replicas,
        "transaction.state.log.num.partitions": INTERNAL_TOPIC_PARTITIONS,
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": 1,
        "share.coordinator.state.topic.num.partitions": INTERNAL_TOPIC_PARTITIONS,
        "share.coordinator.state.topic.replication.factor": replicas,
        "share.coordinator.state.topic.min.isr": 1,
        # The default reserves 128 MB of a heap that is 256 MB here.
        "log.cleaner.dedupe.buffer.size": 4 * 1024 * 1024,
    }
