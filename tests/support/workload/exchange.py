"""What the workload asks and how it judges the answer. Pure."""

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from kio.schema.errors import ErrorCode
from kio.static.protocol import RequestPayload, ResponsePayload

R = TypeVar("R", bound=ResponsePayload)


class Verdict(enum.Enum):
    """What one read showed."""

    FRESH = "fresh"
    STALE = "stale"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """A verdict, and for an error its cause."""

    verdict: Verdict
    cause: str = ""


MISSING = (ErrorCode.unknown_topic_or_partition, ErrorCode.resource_not_found)
"""What a broker answers about something that its metadata does not have."""

FRESH = Judgement(verdict=Verdict.FRESH)
STALE = Judgement(verdict=Verdict.STALE)


def failed(cause: str | ErrorCode) -> Judgement:
    """The read was answered with an error, or not at all."""
    return Judgement(verdict=Verdict.ERROR, cause=cause.name if isinstance(cause, ErrorCode) else cause)


def fresh_if(seen: bool) -> Judgement:
    """The answer is well formed; does it show the write?"""
    return FRESH if seen else STALE


@dataclass(frozen=True, slots=True, kw_only=True)
class Read(Generic[R]):
    """A request whose answer shows whether a write has arrived."""

    request: RequestPayload
    response_type: type[R]
    judge: Callable[[R], Judgement]


@dataclass(frozen=True, slots=True, kw_only=True)
class Write(Generic[R]):
    """A request that changes something.

    `errors` gives the error codes of every part of its answer, in order; it may remember what the answer says.
    """

    request: RequestPayload
    response_type: type[R]
    errors: Callable[[R], list[ErrorCode]]
