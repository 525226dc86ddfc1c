"""Positions: how probe answers become what is known of each broker (consistency.md sections 2 and 3).

The probe is an ApiVersions answer, whose ``finalized_features_epoch`` is the offset of the broker's metadata image.
Knows nothing of who sends probes, nor of sessions.
"""

from collections.abc import Mapping
from dataclasses import replace

from sidecar.core.ids import NEVER, UNKNOWN_OFFSET, Offset, Seq
from sidecar.core.view import Broker


def probed(
    broker: Broker, *, asked: Seq, offset: Offset | None, versions: Mapping[int, tuple[int, int]] | None = None
) -> Broker:
    """The broker after a probe that was sent at ``asked`` found its image at ``offset``.

    A position below the known one can only come from another process behind the same address: a new incarnation.

    Args:
        offset: None for a broker that reports no position.
    """
    versions = broker.versions if versions is None else versions
    if offset is None or offset < 0:
        return replace(broker, up=True, positions=False, versions=versions)
    if offset < broker.visible:
        broker = incarnation_ended(broker)
    if offset > broker.visible:
        broker = replace(broker, effective=broker.visible, visible=offset)
    return replace(broker, up=True, positions=True, proven=max(asked, broker.proven), versions=versions)


def incarnation_ended(broker: Broker) -> Broker:
    """The broker once its side ended a connection: what was known may have been another process's."""
    return replace(
        broker, incarnation=broker.incarnation + 1, visible=UNKNOWN_OFFSET, effective=UNKNOWN_OFFSET, proven=NEVER
    )
