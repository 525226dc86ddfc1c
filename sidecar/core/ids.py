"""The identifiers of the core, one type each, so that they cannot be mixed."""

from typing import NewType

NodeId = NewType("NodeId", int)
"""A broker's ``node.id``. Never virtualised: clients see the ids of the cluster."""

Seq = NewType("Seq", int)
"""Place of an event in the order in which the core saw it. Strictly increasing, so "sent after" never ties."""

Identity = NewType("Identity", int)
"""Somebody whom brokers know by a login: a number of the shell's. How that one logs in, the core never learns."""

OWN = Identity(0)
"""The sidecar itself, which is also every client that the brokers do not tell from it."""

Offset = int
"""Position in ``__cluster_metadata``; inclusive, as a broker's image reports it. -1: nothing known."""

UNKNOWN_OFFSET: Offset = -1
NEVER = Seq(0)
"""Before every event."""
