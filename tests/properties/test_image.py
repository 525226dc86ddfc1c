"""The image against a model of plain dicts: same content after every batch, and no image ever changes again."""

from collections import Counter
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    MultipleResults,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
)

from backend.metadata.image import Image
from backend.metadata.records import (
    LEADER_UNCHANGED,
    AccessControlEntryRecord,
    Batch,
    BrokerEndpoint,
    BrokerRegistrationChangeRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    EntityData,
    FeatureLevelRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    Record,
    RegisterBrokerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UnregisterBrokerRecord,
    UserScramCredentialRecord,
)
from backend.metadata.serde import decode_record, encode_record
from backend.metadata.snapshots import load, records_of

NAMES = st.sampled_from(["a", "b", "a.b", "a_b", "a.b.c", "long-name"])
KEYS = st.sampled_from(["k", "l", "m"])
BROKERS = st.integers(1, 4)
REPLICAS = st.lists(BROKERS, min_size=1, max_size=3, unique=True).map(tuple)


def content(image: Image) -> dict[str, Any]:
    """Everything that an image says, as plain values."""
    return {
        "topics": {name: (topic.topic_id, list(topic.partitions)) for name, topic in image.topics.by_name.items()},
        "names": dict(image.topics.names.items()),
        "unified": dict(image.topics.unified.items()),
        "brokers": dict(image.cluster.brokers.items()),
        "configs": {tuple(resource): dict(of.items()) for resource, of in image.configs.resources.items()},
        "acls": dict(image.acls.by_id.items()),
        "acl_ids": {acl_id: acl for acl, acl_id in image.acls.ids.items()},
        "quotas": {entity: dict(of.items()) for entity, of in image.client_quotas.entities.items()},
        "scram": {user: dict(of.items()) for user, of in image.scram.users.items()},
        "patterns": {pattern: sorted(a.principal for a in of) for pattern, of in image.acls.by_pattern.items()},
        "prefixes": {of: dict(lengths.items()) for of, lengths in image.acls.prefix_lengths.items()},
        "tokens": {token_id: token.expiration_timestamp for token_id, token in image.tokens.by_id.items()},
        "features": dict(image.features.items()),
    }


class ImageMachine(RuleBasedStateMachine):
    """Records are written into the model at once, and into the image batch by batch."""

    topics = Bundle("topics")
    acls = Bundle("acls")

    @initialize(target=topics)
    def begin(self) -> MultipleResults[bytes]:
        """An empty image; two topics are on their way, for most rules need one."""
        self.image = Image.empty("cluster")
        self.pending: list[Record] = []
        self.history: list[tuple[Image, dict[str, Any]]] = []
        self.ids = 0
        self.topic_names: dict[bytes, str] = {}
        self.partitions: dict[bytes, list[dict[str, Any]]] = {}
        self.brokers: dict[int, dict[str, Any]] = {}
        self.configs: dict[tuple[int, str], dict[str, str]] = {}
        self.access: dict[bytes, tuple[str, tuple[int, int, str]]] = {}
        self.quotas: dict[tuple[tuple[str, str | None], ...], dict[str, float]] = {}
        self.scram: dict[str, dict[int, int]] = {}
        self.tokens: dict[str, int] = {}
        self.features: dict[str, int] = {}
        topic_ids = [self.create_topic_now(name) for name in ("a", "b.c")]
        for topic_id in topic_ids:
            self.set_partition_now(topic_id, 0, (1, 2))
            self.set_partition_now(topic_id, 1, (2, 3))
        self.set_config(2, "a", "k", "1")
        return multiple(*topic_ids)

    def new_id(self) -> bytes:
        self.ids += 1
        return self.ids.to_bytes(16, "big")

    @rule(target=topics, name=NAMES)
    def create_topic(self, name: str) -> bytes | MultipleResults[bytes]:
        return multiple() if name in self.topic_names.values() else self.create_topic_now(name)

    def create_topic_now(self, name: str) -> bytes:
        topic_id = self.new_id()
        self.pending.append(TopicRecord(name=name, topic_id=topic_id))
        self.topic_names[topic_id] = name
        self.partitions[topic_id] = []
        return topic_id

    @rule(topic_id=consumes(topics))
    def remove_topic(self, topic_id: bytes) -> None:
        name = self.topic_names.pop(topic_id)
        self.pending.append(RemoveTopicRecord(topic_id=topic_id))
        del self.partitions[topic_id]
        self.configs.pop((2, name), None)

    @rule(topic_id=topics, replicas=REPLICAS, at=st.integers(0, 3))
    def set_partition(self, topic_id: bytes, replicas: tuple[int, ...], at: int) -> None:
        self.set_partition_now(topic_id, min(at, len(self.partitions[topic_id])), replicas)

    def set_partition_now(self, topic_id: bytes, index: int, replicas: tuple[int, ...]) -> None:
        partitions = self.partitions[topic_id]
        self.pending.append(
            PartitionRecord(
                partition_id=index,
                topic_id=topic_id,
                replicas=replicas,
                isr=replicas,
                leader=replicas[0],
                leader_epoch=0,
                partition_epoch=0,
            )
        )
        partitions[index : index + 1] = [
            {"replicas": replicas, "isr": replicas, "leader": replicas[0], "leader_epoch": 0, "partition_epoch": 0}
        ]

    @rule(
        topic_id=topics,
        at=st.integers(0, 3),
        isr=st.none() | REPLICAS,
        leader=st.sampled_from([LEADER_UNCHANGED, -1, 1, 2]),
    )
    def change_partition(self, topic_id: bytes, at: int, isr: tuple[int, ...] | None, leader: int) -> None:
        partitions = self.partitions[topic_id]
        if not partitions:
            return
        at %= len(partitions)
        self.pending.append(PartitionChangeRecord(partition_id=at, topic_id=topic_id, isr=isr, leader=leader))
        partition = partitions[at]
        partition["partition_epoch"] += 1
        if isr is not None:
            partition["isr"] = isr
        if leader != LEADER_UNCHANGED:
            partition["leader"] = leader
            partition["leader_epoch"] += 1

    @rule(broker_id=BROKERS, fenced=st.booleans())
    def register(self, broker_id: int, fenced: bool) -> None:
        point = BrokerEndpoint(name="PLAINTEXT", host="h", port=1)
        self.ids += 1
        self.pending.append(
            RegisterBrokerRecord(
                broker_id=broker_id,
                incarnation_id=bytes(16),
                broker_epoch=self.ids,
                end_points=(point,),
                fenced=fenced,
            )
        )
        self.brokers[broker_id] = {"epoch": self.ids, "fenced": fenced, "leaving": False}

    @rule(broker_id=BROKERS, fenced=st.sampled_from([-1, 0, 1]), leaving=st.sampled_from([0, 1]))
    def change_broker(self, broker_id: int, fenced: int, leaving: int) -> None:
        broker = self.brokers.get(broker_id)
        if broker is None:
            return
        self.pending.append(
            BrokerRegistrationChangeRecord(
                broker_id=broker_id, broker_epoch=broker["epoch"], fenced=fenced, in_controlled_shutdown=leaving
            )
        )
        broker["fenced"] = {-1: False, 0: broker["fenced"], 1: True}[fenced]
        broker["leaving"] = broker["leaving"] or leaving == 1

    @rule(broker_id=BROKERS)
    def unregister(self, broker_id: int) -> None:
        broker = self.brokers.pop(broker_id, None)
        if broker is not None:
            self.pending.append(UnregisterBrokerRecord(broker_id=broker_id, broker_epoch=broker["epoch"]))

    @rule(of=st.sampled_from([2, 4]), name=NAMES, key=KEYS, value=st.none() | st.sampled_from(["1", "2"]))
    def set_config(self, of: int, name: str, key: str, value: str | None) -> None:
        self.pending.append(ConfigRecord(resource_type=of, resource_name=name, name=key, value=value))
        found = self.configs.setdefault((of, name), {})
        if value is None:
            found.pop(key, None)
        else:
            found[key] = value
        if not found:
            del self.configs[of, name]

    @rule(target=acls, name=st.sampled_from(["a", "b", "ab"]), pattern_type=st.sampled_from([3, 4]))
    def add_rule(self, name: str, pattern_type: int) -> bytes:
        acl_id = self.new_id()
        principal = f"User:{self.ids}"
        self.pending.append(
            AccessControlEntryRecord(
                id=acl_id,
                resource_type=2,
                resource_name=name,
                pattern_type=pattern_type,
                principal=principal,
                host="*",
                operation=3,
                permission_type=3,
            )
        )
        self.access[acl_id] = principal, (2, pattern_type, name)
        return acl_id

    @rule(acl_id=consumes(acls))
    def remove_rule(self, acl_id: bytes) -> None:
        self.pending.append(RemoveAccessControlEntryRecord(id=acl_id))
        del self.access[acl_id]

    @rule(
        parts=st.dictionaries(st.sampled_from(["user", "client-id"]), st.none() | KEYS, min_size=1),
        key=KEYS,
        value=st.none() | st.floats(1, 9),
    )
    def set_quota(self, parts: dict[str, str | None], key: str, value: float | None) -> None:
        entity = tuple(EntityData(entity_type=kind, entity_name=name) for kind, name in parts.items())
        self.pending.append(ClientQuotaRecord(entity=entity, key=key, value=value or 0.0, remove=value is None))
        found = self.quotas.setdefault(tuple(sorted(parts.items())), {})
        if value is None:
            found.pop(key, None)
        else:
            found[key] = value
        if not found:
            del self.quotas[tuple(sorted(parts.items()))]

    @rule(user=KEYS, mechanism=st.sampled_from([1, 2]), iterations=st.integers(4096, 5000))
    def set_credential(self, user: str, mechanism: int, iterations: int) -> None:
        self.pending.append(
            UserScramCredentialRecord(
                name=user, mechanism=mechanism, salt=b"s", stored_key=b"k", server_key=b"v", iterations=iterations
            )
        )
        self.scram.setdefault(user, {})[mechanism] = iterations

    @rule(user=KEYS, mechanism=st.sampled_from([1, 2]))
    def remove_credential(self, user: str, mechanism: int) -> None:
        if mechanism not in self.scram.get(user, {}):
            return
        self.pending.append(RemoveUserScramCredentialRecord(name=user, mechanism=mechanism))
        del self.scram[user][mechanism]
        if not self.scram[user]:
            del self.scram[user]

    @rule(token_id=KEYS, expiry=st.integers(0, 9))
    def set_token(self, token_id: str, expiry: int) -> None:
        self.pending.append(
            DelegationTokenRecord(
                owner="User:o",
                requester="User:r",
                renewers=(),
                issue_timestamp=0,
                max_timestamp=9,
                expiration_timestamp=expiry,
                token_id=token_id,
            )
        )
        self.tokens[token_id] = expiry

    @rule(token_id=KEYS)
    def remove_token(self, token_id: str) -> None:
        if self.tokens.pop(token_id, None) is not None:
            self.pending.append(RemoveDelegationTokenRecord(token_id=token_id))

    @rule(name=KEYS, level=st.integers(0, 3))
    def set_feature(self, name: str, level: int) -> None:
        self.pending.append(FeatureLevelRecord(name=name, feature_level=level))
        self.features[name] = level
        if not level:
            del self.features[name]

    @rule()
    def nothing(self) -> None:
        self.pending.append(NoOpRecord())

    @precondition(lambda self: self.pending)
    @rule(gap=st.integers(0, 2), epochs=st.integers(0, 2))
    def commit(self, gap: int, epochs: int) -> None:
        self.history.append((self.image, content(self.image)))
        batch = Batch(
            base_offset=self.image.highest_offset + 1 + gap,
            leader_epoch=max(self.image.highest_epoch, 0) + epochs,
            records=tuple(self.pending),
        )
        self.image = self.image.apply(batch)
        assert self.image.highest_offset == batch.base_offset + len(self.pending) - 1
        assert self.image.highest_epoch == batch.leader_epoch
        self.pending = []
        self.check()

    def teardown(self) -> None:
        """The records of a snapshot, through their bytes, make the same image again."""
        records = [decode_record(encode_record(record)) for record in records_of(self.image)]
        end_offset, epoch = self.image.highest_offset + 1, self.image.highest_epoch
        loaded = load(self.image.cluster_id, records, end_offset=end_offset, epoch=epoch)
        assert content(loaded) == content(self.image)

    @invariant()
    def old_images_stay(self) -> None:
        for image, before in self.history[-3:]:
            assert content(image) == before

    def check(self) -> None:
        found = content(self.image)
        assert found["names"] == self.topic_names
        assert {name: topic_id for name, (topic_id, _) in found["topics"].items()} == {
            name: topic_id for topic_id, name in self.topic_names.items()
        }
        assert {
            name: [
                {field: getattr(partition, field) for field in model}
                for partition, model in zip(partitions, self.partitions[topic_id], strict=True)
            ]
            for name, (topic_id, partitions) in found["topics"].items()
        } == {self.topic_names[topic_id]: partitions for topic_id, partitions in self.partitions.items()}
        unified: dict[str, set[str]] = {}
        for name in self.topic_names.values():
            if "." in name or "_" in name:
                unified.setdefault(name.replace(".", "_"), set()).add(name)
        assert found["unified"] == unified
        assert {
            broker_id: {
                "epoch": broker.broker_epoch,
                "fenced": broker.fenced,
                "leaving": broker.in_controlled_shutdown,
            }
            for broker_id, broker in found["brokers"].items()
        } == self.brokers
        assert found["configs"] == self.configs
        assert {acl_id: acl.principal for acl_id, acl in found["acls"].items()} == {
            acl_id: principal for acl_id, (principal, _) in self.access.items()
        }
        assert found["acl_ids"] == found["acls"]
        assert found["quotas"] == self.quotas
        assert {
            user: {mechanism: credential.iterations for mechanism, credential in of.items()}
            for user, of in found["scram"].items()
        } == self.scram
        patterns = {pattern for _, pattern in self.access.values()}
        assert found["patterns"] == {
            pattern: sorted(principal for principal, of in self.access.values() if of == pattern)
            for pattern in patterns
        }
        lengths = Counter(len(name) for _, pattern_type, name in patterns if pattern_type == 4)
        assert found["prefixes"].get(2, {}) == dict(lengths)
        assert found["tokens"] == self.tokens
        assert found["features"] == self.features


TestImage = ImageMachine.TestCase
TestImage.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
