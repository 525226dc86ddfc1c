"""The identifiers of the core, one type each, so that they cannot be mixed."""

from typing import NewType

NodeId = NewType("NodeId", int)
"""A broker's ``node.id``. Never virtualised: clients see the ids of the cluster."""

Seq = NewType("Seq", int)
"""Place of an event in the order in which the core saw it. Strictly increasing, so "sent after" never ties."""

Offset = int
"""Position in ``__cluster_metadata``; inclusive, as a broker's image reports it. -1: nothing known."""

UNKNOWN_OFFSET: Offset = -1
NEVER = Seq(0)
"""Before every event."""
