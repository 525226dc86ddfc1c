"""The structural walk over Produce and Fetch answers: error codes and NodeEndpoints, without decoding a record.

A partition that has moved is answered with an error code; from Produce v10 and Fetch v16 on the answer also names the
new leader's address, in a tagged field at the very end (KIP-951). The walk follows the length prefixes to that field
and notes the partitions' error codes on the way; `replace_node_endpoints` then patches only the tail. Everything else,
unknown tagged fields included, is copied byte for byte.

The walk knows no port and no session: `sidecar.core.addresses` says what to put there.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, NamedTuple, final

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
_WALKED: Final = (ApiKey.PRODUCE, ApiKey.FETCH)


@final
class Walk(NamedTuple):
    """What the walk over one answer found.

    Attributes:
        api_key: Produce or Fetch.
        api_version: The version of the request.
        error_codes: The error codes other than 0 of the partitions.
        endpoints: The decoded NodeEndpoints, each with `node_id host port rack`; empty when there are none.
        tags_start: Where the tagged section at the end of the body begins, -1 in versions without one.
    """

    api_key: int
    api_version: int
    error_codes: frozenset[int]
    endpoints: tuple[dict[str, Any], ...]
    tags_start: int

    @property
    def leader_changed(self) -> bool:
        """Whether a partition's error says that the client's picture of the leaders is out of date."""
        return not LEADER_CHANGE_ERRORS.isdisjoint(self.error_codes)


def node_endpoints(payload: bytes, api_key: int, api_version: int, body_offset: int) -> Walk:
    """Walk over a whole answer to Produce or Fetch, in any version.

    Time follows the number of partitions and aborted transactions, not the number of bytes; nothing is copied.

    Raises:
        CodecError: The bytes are no such answer, or the version is unknown.
    """
    plan = _plan(api_key, api_version)
    error_codes: set[int] = set()
    end = skip(payload, body_offset, plan.program, error_codes, plan.name)
    tags_start = -1
    endpoints: tuple[dict[str, Any], ...] = ()
    if plan.flexible:
        tags_start = end
        if payload[end : end + 1] == b"\0":
            end += 1
        else:
            endpoints, end = _read_tags(payload, end, plan)
    if end != len(payload):
        raise CodecError(end, plan.name, f"{len(payload) - end} bytes left over")
    return Walk(api_key, api_version, frozenset(error_codes), endpoints, tags_start)


def replace_node_endpoints(payload: bytes, walk: Walk, endpoints: Iterable[Mapping[str, Any]]) -> bytes:
    """The answer with these NodeEndpoints; without any when there are none.

    Args:
        payload: The very payload that was walked.
        walk: What the walk found.
        endpoints: Mappings with `node_id host port rack`.

    Raises:
        CodecError: An endpoint does not fit, or this version has no place for one.
    """
    plan = _plan(walk.api_key, walk.api_version)
    wanted = list(endpoints)
    if plan.tag is None:
        if wanted:
            raise CodecError(0, _NODE_ENDPOINTS, f"version {walk.api_version} has none")
        return payload
    section = read_tag_section(payload, walk.tags_start, plan.name)
    if not wanted:
        return with_tag(payload, section, plan.tag, None)
    content = bytearray()
    plan.encode(wanted, content)
    return with_tag(payload, section, plan.tag, bytes(content))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    name: str
    program: Program
    flexible: bool
    tag: int | None
    decode: Decode
    encode: Encode


@cache
def _plan(api_key: int, api_version: int) -> _Plan:
    if api_key not in _WALKED:
        raise CodecError(0, "api_key", f"no walk for API key {api_key}")
    table = response_table(api_key)
    check_version(table, api_version)
    flexible = table.is_flexible(api_version)
    endpoints = _endpoints_field(table)
    return _Plan(
        name=f"{table.api_key.name} response",
        program=skip_program(table.body.fields, api_version, flexible, tags=False),
        flexible=flexible,
        tag=endpoints.tag if api_version in endpoints.versions else None,
        decode=field_decoder(endpoints, api_version, flexible, ""),
        encode=field_encoder(endpoints, api_version, flexible, ""),
    )


def _endpoints_field(table: Message) -> Field:
    return next(field for field in table.body.fields if field.name == _NODE_ENDPOINTS)


def _read_tags(payload: bytes, offset: int, plan: _Plan) -> tuple[tuple[dict[str, Any], ...], int]:
    section = read_tag_section(payload, offset, plan.name)
    entry = None if plan.tag is None else section.find(plan.tag)
    if entry is None:
        return (), section.end
    endpoints, end = plan.decode(payload, entry.content_start)
    if end != entry.end:
        raise CodecError(end, _NODE_ENDPOINTS, f"the tagged field ends at byte {entry.end}")
    return tuple(endpoints), section.end
