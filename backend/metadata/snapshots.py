"""An image as records, and back: what a snapshot of the metadata log holds (KIP-630, ImageWriter of Kafka).

`records_of` writes every part of an image in an order in which it can be replayed; `load` replays them on an empty
image and sets it at the snapshot's offset. `PARTS` has one writer for each part of `Image`, so that a part that is
added to it cannot be forgotten here. Pure; batches, control records and files are the business of others.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from backend.metadata.image import Image
from backend.metadata.records import (
    ClientQuotaRecord,
    ConfigRecord,
    EntityData,
    FeatureLevelRecord,
    PartitionRecord,
    Record,
    TopicRecord,
    UserScramCredentialRecord,
)


def records_of(image: Image) -> Iterator[Record]:
    """All records that make the image; one pass, nothing is kept."""
    for write in PARTS.values():
        yield from write(image)


def load(cluster_id: str, records: Iterable[Record], *, end_offset: int, epoch: int) -> Image:
    """The image that a snapshot holds.

    Args:
        cluster_id: whose snapshot it is.
        records: in the order of the snapshot.
        end_offset: the first offset that is not in it.
        epoch: leader epoch of the last record that is.

    Raises:
        ReplayError: A record does not fit.
    """
    return Image.loaded(cluster_id, records, highest_offset=end_offset - 1, highest_epoch=epoch)


def _features(image: Image) -> Iterator[Record]:
    for name, level in sorted(image.features.items()):
        yield FeatureLevelRecord(name=name, feature_level=level)


def _brokers(image: Image) -> Iterator[Record]:
    # A registration is kept as the record that makes it.
    yield from image.cluster.registered()


def _topics(image: Image) -> Iterator[Record]:
    for topic in image.topics.by_name.values():
        yield TopicRecord(name=topic.name, topic_id=topic.topic_id)
        for partition_id, partition in enumerate(topic.partitions):
            yield PartitionRecord(
                partition_id=partition_id,
                topic_id=topic.topic_id,
                replicas=partition.replicas,
                isr=partition.isr,
                removing_replicas=partition.removing_replicas,
                adding_replicas=partition.adding_replicas,
                leader=partition.leader,
                leader_recovery_state=partition.leader_recovery_state,
                leader_epoch=partition.leader_epoch,
                partition_epoch=partition.partition_epoch,
                directories=partition.directories,
                eligible_leader_replicas=partition.elr or None,
                last_known_elr=partition.last_known_elr or None,
            )


def _configs(image: Image) -> Iterator[Record]:
    for resource, configs in image.configs.resources.items():
        for name, value in configs.items():
            yield ConfigRecord(
                resource_type=resource.resource_type, resource_name=resource.resource_name, name=name, value=value
            )


def _acls(image: Image) -> Iterator[Record]:
    for acl_id, acl in image.acls.by_id.items():
        yield acl.to_record(acl_id)


def _quotas(image: Image) -> Iterator[Record]:
    for entity, quotas in image.client_quotas.entities.items():
        parts = tuple(EntityData(entity_type=kind, entity_name=name) for kind, name in entity)
        for key, value in quotas.items():
            yield ClientQuotaRecord(entity=parts, key=key, value=value)


def _scram(image: Image) -> Iterator[Record]:
    for user, credentials in image.scram.users.items():
        for mechanism, credential in credentials.items():
            yield UserScramCredentialRecord(
                name=user,
                mechanism=mechanism,
                salt=credential.salt,
                stored_key=credential.stored_key,
                server_key=credential.server_key,
                iterations=credential.iterations,
            )


def _tokens(image: Image) -> Iterator[Record]:
    # A token is kept as the record that makes it.
    yield from image.tokens.by_id.values()


PARTS: Final[Mapping[str, Callable[[Image], Iterator[Record]]]] = {
    "features": _features,
    "cluster": _brokers,
    "topics": _topics,
    "configs": _configs,
    "acls": _acls,
    "client_quotas": _quotas,
    "scram": _scram,
    "tokens": _tokens,
}
"""Name of the part in `Image` to what writes it, in the order of the snapshot."""
