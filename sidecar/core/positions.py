"""Positions: how answers become what is known of each broker (consistency.md sections 2 and 3).

A probe is an ApiVersions question, whose answer has the offset of the broker's metadata image in
``finalized_features_epoch``. Brokers that implement the proposal tell the same in the header of every answer. Knows
nothing of who sends probes, nor of sessions.
"""

from collections.abc import Mapping
from dataclasses import replace

from codec.api_keys import ApiKey
from sidecar.core.ids import NEVER, UNKNOWN_OFFSET, Offset, Seq
from sidecar.core.view import Broker


def has_position(versions: Mapping[int, tuple[int, int]]) -> bool:
    """Whether the epoch in a broker's ApiVersions answer is a position in the metadata log.

    A broker in ZooKeeper mode shows the version of a ZooKeeper node in that field; it does not offer DescribeQuorum.
    """
    return ApiKey.DESCRIBE_QUORUM in versions


def probed(
    broker: Broker,
    *,
    asked: Seq,
    offset: Offset | None,
    versions: Mapping[int, tuple[int, int]] | None = None,
    carries_state: bool = False,
) -> Broker:
    """The broker after a probe that was sent at ``asked`` found its image at ``offset``.

    A position below one that was known when it was asked for can only come from another process behind the same
    address: a new incarnation. If the higher one came in between, in a header, that merely overtook the probe.

    Args:
        offset: None for a broker that reports no position.
        versions: as in `Broker`; None: as before.
        carries_state: as in `Broker`.
    """
    versions = broker.versions if versions is None else versions
    if offset is None or offset < 0 or (versions and not has_position(versions)):
        return replace(broker, up=True, positions=False, versions=versions)
    if offset < broker.visible and asked > broker.learned:
        broker = incarnation_ended(broker)
    broker = replace(broker, up=True, positions=True, versions=versions, carries_state=carries_state)
    return shown(broker, asked=asked, learned=asked, offset=offset)


def shown(broker: Broker, *, asked: Seq, learned: Seq, offset: Offset) -> Broker:
    """The broker after an answer of this incarnation, to a question sent at ``asked``, told its position.

    Answers of different connections overtake each other, so a lower position than the known one says nothing new.

    Args:
        learned: when the answer came; of a probe, no later than the next one is sent.
    """
    if offset > broker.visible:
        broker = replace(broker, effective=broker.visible, visible=offset, learned=learned)
    return replace(broker, proven=max(asked, broker.proven))


def incarnation_ended(broker: Broker) -> Broker:
    """The broker once its side ended a connection: what was known may have been another process's."""
    return replace(
        broker,
        incarnation=broker.incarnation + 1,
        visible=UNKNOWN_OFFSET,
        effective=UNKNOWN_OFFSET,
        proven=NEVER,
        learned=NEVER,
        carries_state=False,
    )
