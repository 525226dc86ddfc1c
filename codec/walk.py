"""The structural walk over the answers that carry records: error codes and NodeEndpoints, without decoding a record.

A partition that has moved is answered with an error code; from Produce v10 and Fetch v16 on the answer also names the
new leader's address, in a tagged field at the very end (KIP-951); ShareFetch and ShareAcknowledge have it as an
ordinary array at the end. The walk follows the length prefixes to that tail and notes the partitions' error codes on
the way; `replace_node_endpoints` then patches only the tail. Everything else, unknown tagged fields included, is copied
byte for byte.

Here the whole answer is there; `codec.chunked_walk` finds the same tail in an answer that comes in chunks, and hands it
to `walk_tail`. The walk knows no port and no session: `sidecar.core.addresses` says what to put there.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Literal, NamedTuple, final

from codec.api_keys import ApiKey
from codec.compiled import check_version
from codec.decoding import Decode, field_decoder
from codec.encoding import Encode, field_encoder
from codec.error_codes import ErrorCode
from codec.errors import CodecError
from codec.registry import response_table
from codec.schema import Field, Message
from codec.skipping import Program, skip, skip_program
from codec.tags import read_tag_section, with_tag

LEADER_CHANGE_ERRORS: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.LISTENER_NOT_FOUND,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }
)
"""After these a client asks for metadata again, so its next read must not be older than the broker that said so."""

_NODE_ENDPOINTS: Final = "node_endpoints"
WALKED: Final = frozenset({ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE})
"""The APIs whose answers can be walked."""


@final
class Walk(NamedTuple):
    """What the walk over one answer found.

    Attributes:
        api_key: One of `WALKED`.
        api_version: The version of the request.
        error_codes: The error codes other than 0 of the partitions.
        endpoints: The decoded NodeEndpoints, each with `node_id host port rack`; empty when there are none.
        tail_start: Where the part that holds the endpoints begins, -1 in versions without a place for them: the tagged
            section at the end of the body, or in the share APIs the array before it.
    """

    api_key: int
    api_version: int
    error_codes: frozenset[int]
    endpoints: tuple[dict[str, Any], ...]
    tail_start: int

    @property
    def leader_changed(self) -> bool:
        """Whether a partition's error says that the client's picture of the leaders is out of date."""
        return not LEADER_CHANGE_ERRORS.isdisjoint(self.error_codes)


def node_endpoints(payload: bytes, api_key: int, api_version: int, body_offset: int) -> Walk:
    """Walk over a whole answer of one of the `WALKED` APIs, in any version.

    Time follows the number of partitions and aborted transactions, not the number of bytes; nothing is copied.

    Raises:
        CodecError: The bytes are no such answer, or the version is unknown.
    """
    plan = plan_of(api_key, api_version)
    error_codes: set[int] = set()
    end = skip(payload, body_offset, plan.before, error_codes, plan.name)
    return _walk_tail(payload, end, plan, frozenset(error_codes))


def walk_tail(tail: bytes, api_key: int, api_version: int, error_codes: frozenset[int]) -> Walk:
    """The walk over what `codec.chunked_walk` left: the answer from its tail on.

    The result goes into `replace_node_endpoints` together with that tail.

    Raises:
        CodecError: The bytes are no such tail, or the version is unknown.
    """
    return _walk_tail(tail, 0, plan_of(api_key, api_version), error_codes)


def replace_node_endpoints(payload: bytes, walk: Walk, endpoints: Iterable[Mapping[str, Any]]) -> bytes:
    """The answer with these NodeEndpoints; without any when there are none.

    Args:
        payload: The very payload, or tail, that was walked.
        walk: What the walk found.
        endpoints: Mappings with `node_id host port rack`.

    Raises:
        CodecError: An endpoint does not fit, or this version has no place for one.
    """
    plan = plan_of(walk.api_key, walk.api_version)
    wanted = list(endpoints)
    if plan.place == "nowhere":
        if wanted:
            raise CodecError(0, _NODE_ENDPOINTS, f"version {walk.api_version} has none")
        return payload
    content = bytearray()
    plan.encode(wanted, content)
    if plan.place == "array":
        _, end = plan.decode(payload, walk.tail_start)
        return b"".join((payload[: walk.tail_start], content, payload[end:]))
    section = read_tag_section(payload, walk.tail_start, plan.name)
    return with_tag(payload, section, plan.tag, bytes(content) if wanted else None)


def tags_start(payload: bytes, walk: Walk) -> int:
    """Where the tagged section at the end of the body begins, in the very payload or tail that was walked.

    Raises:
        CodecError: The version is not flexible: it has none.
    """
    plan = plan_of(walk.api_key, walk.api_version)
    if not plan.flexible:
        raise CodecError(0, plan.name, f"version {walk.api_version} has no tagged fields")
    return plan.decode(payload, walk.tail_start)[1] if plan.place == "array" else walk.tail_start


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How to walk over one API's answer in one version.

    Attributes:
        api_key: Which API.
        api_version: Which version.
        name: What errors call it.
        before: The program of everything in front of the tail.
        flexible: Whether a tagged section ends the body.
        place: Where the endpoints are.
        tag: The number of their tagged field, -1 where they are in none.
        decode: Reads them.
        encode: Writes them.
    """

    api_key: int
    api_version: int
    name: str
    before: Program
    flexible: bool
    place: Literal["tag", "array", "nowhere"]
    tag: int
    decode: Decode
    encode: Encode


@cache
def plan_of(api_key: int, api_version: int) -> Plan:
    """The plan for one of the `WALKED` APIs.

    Raises:
        CodecError: It is none of them, or the version is unknown.
    """
    if api_key not in WALKED:
        raise CodecError(0, "api_key", f"no walk for API key {api_key}")
    table = response_table(api_key)
    check_version(table, api_version)
    flexible = table.is_flexible(api_version)
    endpoints = _endpoints_field(table)
    place: Literal["tag", "array", "nowhere"] = "array" if endpoints.tag is None else "tag"
    before = tuple(field for field in table.body.fields if field is not endpoints)
    return Plan(
        api_key=api_key,
        api_version=api_version,
        name=f"{table.api_key.name} response",
        before=skip_program(before, api_version, flexible, tags=False),
        flexible=flexible,
        place=place if api_version in endpoints.versions else "nowhere",
        tag=-1 if endpoints.tag is None else endpoints.tag,
        decode=field_decoder(endpoints, api_version, flexible, ""),
        encode=field_encoder(endpoints, api_version, flexible, ""),
    )


def _walk_tail(payload: bytes, start: int, plan: Plan, error_codes: frozenset[int]) -> Walk:
    end = start
    endpoints: Sequence[dict[str, Any]] = ()
    if plan.place == "array":
        endpoints, end = plan.decode(payload, end)
    if plan.flexible:
        if payload[end : end + 1] == b"\0":
            end += 1
        else:
            tagged, end = _read_tags(payload, end, plan)
            endpoints = endpoints or tagged
    if end != len(payload):
        raise CodecError(end, plan.name, f"{len(payload) - end} bytes left over")
    return Walk(plan.api_key, plan.api_version, error_codes, tuple(endpoints), start if plan.flexible else -1)


def _endpoints_field(table: Message) -> Field:
    return next(field for field in table.body.fields if field.name == _NODE_ENDPOINTS)


def _read_tags(payload: bytes, offset: int, plan: Plan) -> tuple[tuple[dict[str, Any], ...], int]:
    section = read_tag_section(payload, offset, plan.name)
    entry = section.find(plan.tag) if plan.place == "tag" else None
    if entry is None:
        return (), section.end
    endpoints, end = plan.decode(payload, entry.content_start)
    if end != entry.end:
        raise CodecError(end, _NODE_ENDPOINTS, f"the tagged field ends at byte {entry.end}")
    return tuple(endpoints), section.end
