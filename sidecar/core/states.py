"""ConsistencyState: what brokers that implement the proposal add, and what the sidecar says to them (consistency.md 4).

Such a broker puts its position into the header of every flexible answer, read after the answer was built. That is what
a probe would have found, for nothing: `sidecar.core.cluster` takes it over. Gated reads that go to such a broker carry
what they must show, so that it would refuse where the sidecar was wrong: a second line of defence, never the first.

Bytes and values only; who is asked again, and when, is decided in `sidecar.core.gate`.
"""

from enum import Enum
from typing import Final

from codec import CodecError, decode_response
from codec.api_keys import ApiKey
from codec.error_codes import ErrorCode
from codec.headers import ConsistencyState, response_body_offset, response_state
from codec.registry import request_header_version, response_header_version
from sidecar.core.bounds import Bound
from sidecar.core.ids import UNKNOWN_OFFSET
from sidecar.core.view import Broker

STALE_METADATA: Final = 10_000
"""The proposal gives the error no number; this one is private to Tidegate, far above those of Kafka (136 in 4.4)."""

UNASKED: Final = ConsistencyState()
"""Asks for nothing: the way to see whether a broker answers with a state."""


class Complaint(Enum):
    """Why a broker refused a read because of the state in its header."""

    STALE = STALE_METADATA
    """Its image has not reached the token."""
    FOREIGN = int(ErrorCode.INCONSISTENT_CLUSTER_ID)
    """It belongs to another cluster."""


_ITEMS: Final[dict[int, str]] = {
    ApiKey.METADATA: "topics",
    ApiKey.DESCRIBE_CONFIGS: "results",
    ApiKey.DESCRIBE_LOG_DIRS: "results",
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: "results",
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: "topics",
}
"""Where an answer has errors for each thing that was asked for: an API without a place at the top puts ours there."""

_CODES: Final = {complaint.value: complaint for complaint in Complaint}
_NEEDLES: Final = tuple(code.to_bytes(2, "big") for code in _CODES)
_TAGS_AT: Final = 4
"""Where the tagged fields of a response header v1 begin."""


def can_carry(api_key: int, api_version: int) -> bool:
    """Whether the header of the answer has room for a state."""
    return response_header_version(api_key, api_version) > 0


def state_in(payload: bytes, api_key: int, api_version: int) -> ConsistencyState | None:
    """The state in the header of an answer. None if there is none, or the tagged field means something else there."""
    if payload[_TAGS_AT : _TAGS_AT + 1] == b"\0" or not can_carry(api_key, api_version):
        return None
    try:
        return response_state(payload, api_key, api_version)
    except CodecError:
        return None


def complaint_in(payload: bytes, api_key: int, api_version: int) -> Complaint | None:
    """Why a broker refused a gated read that was stamped; None if it did not.

    Raises:
        codec.CodecError: the bytes are no such answer.
    """
    if not any(needle in payload for needle in _NEEDLES):
        return None
    start = response_body_offset(payload, api_key, api_version)
    body = decode_response(api_key, api_version, payload, start)
    places = [body, *(body.get(_ITEMS.get(api_key, "")) or ())]
    return next((found for place in places if (found := _CODES.get(place.get("error_code", 0)))), None)


def stamp_of(
    api_key: int, api_version: int, bound: Bound, broker: Broker | None, cluster_id: str | None
) -> ConsistencyState | None:
    """What the header of a proven read says to its broker; None: it leaves as it came.

    What the client itself had asked for is part of ``bound``: the token never becomes smaller.
    """
    offset = max(bound.visible, bound.effective)
    if broker is None or not broker.carries_state or offset == UNKNOWN_OFFSET:
        return None
    if request_header_version(api_key, api_version) < 2:
        return None
    return ConsistencyState(cluster_id=cluster_id, consistency_token=offset)
