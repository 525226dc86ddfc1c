"""From the bytes of an answer to what the client gets and what the core must know (proxying.md section 1).

Rewrites the addresses in exactly the answers that carry them, and narrows ApiVersions. All others pass untouched.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from codec import Truncated, decode_response, encode_response
from codec.api_keys import ApiKey
from codec.error_codes import ErrorCode
from codec.headers import ResponseHeader, encode_response_header, response_body_offset
from codec.registry import known_versions, response_table
from codec.splice import replace_brokers, replace_coordinators
from codec.walk import WALKED, node_endpoints, replace_node_endpoints
from sidecar.core.addresses import NodePorts, rewrite_brokers, rewrite_coordinators, rewrite_endpoints
from sidecar.core.events import Address
from sidecar.core.exchange import Request
from sidecar.core.ids import NodeId
from sidecar.core.positions import has_position
from sidecar.core.timeouts import ClusterFacts, timeout_answer
from sidecar.core.versions import narrow_offer, read_offer

_THROTTLE: Final = "throttle_time_ms"
_ID_FIELDS: Final = {ApiKey.METADATA: "node_id", ApiKey.DESCRIBE_CLUSTER: "broker_id"}


@dataclass(frozen=True, slots=True)
class Reading:
    """An answer, read.

    Attributes:
        payload: as the client shall get it.
        leader_changed: a partition of this answer in `WALKED` has moved.
        shown: the broker's position, where the answer is an ApiVersions answer that carries it; else -1.
    """

    payload: bytes
    leader_changed: bool = False
    shown: int = -1


def read_answer(payload: bytes, api_key: int, api_version: int, ports: NodePorts) -> Reading:
    """Reads an answer of an API in `READ_HERE`, and makes every broker address in it one of ours.

    Raises:
        codec.CodecError: the bytes are no such answer.
        sidecar.core.addresses.PortsExhausted: none of its brokers has a port.
    """
    start = response_body_offset(payload, api_key, api_version)
    if api_key in WALKED:
        walk = node_endpoints(payload, api_key, api_version, start)
        if walk.endpoints:
            endpoints = [dict(endpoint) for endpoint in walk.endpoints]
            payload = replace_node_endpoints(payload, walk, rewrite_endpoints(endpoints, ports))
        return Reading(payload, leader_changed=walk.leader_changed)
    if api_key == ApiKey.API_VERSIONS:
        offer = read_offer(payload, api_version, start)
        shown = -1 if offer.position is None or not has_position(offer.versions) else offer.position
        return Reading(narrow_offer(payload, api_version, start), shown=shown)
    if api_key == ApiKey.FIND_COORDINATOR:
        not_available = ErrorCode.COORDINATOR_NOT_AVAILABLE
        return Reading(
            replace_coordinators(payload, api_version, start, lambda c: rewrite_coordinators(c, ports, not_available))
        )
    id_field = _ID_FIELDS[ApiKey(api_key)]
    return Reading(replace_brokers(payload, api_key, api_version, start, lambda b: rewrite_brokers(b, id_field, ports)))


def passes_unchanged(payload: bytes, request: Request) -> bool:
    """Whether an answer in `WALKED` says of no partition that it has moved: the client may get it as it came.

    Raises:
        codec.CodecError: the bytes are no such answer.
    """
    start = response_body_offset(payload, request.api_key, request.api_version)
    walk = node_endpoints(payload, request.api_key, request.api_version, start)
    return not walk.endpoints and not walk.leader_changed


def brokers_named(payload: bytes, api_key: int, api_version: int) -> tuple[Address, ...]:
    """The brokers that an answer in `READ_HERE` names, at their own addresses.

    Raises:
        codec.CodecError: the bytes are no such answer.
    """
    start = response_body_offset(payload, api_key, api_version)
    found: list[dict[str, Any]] = []
    id_field = "node_id"

    def collect(elements: list[dict[str, Any]]) -> list[dict[str, Any]]:
        found.extend(dict(element) for element in elements)
        return elements

    if api_key in WALKED:
        found.extend(node_endpoints(payload, api_key, api_version, start).endpoints)
    elif api_key == ApiKey.FIND_COORDINATOR:
        replace_coordinators(payload, api_version, start, collect)
    elif api_key in _ID_FIELDS:
        id_field = _ID_FIELDS[ApiKey(api_key)]
        replace_brokers(payload, api_key, api_version, start, collect)
    return tuple(
        Address(NodeId(entry[id_field]), entry["host"], entry["port"], entry.get("rack"))
        for entry in found
        if entry[id_field] >= 0 and entry["port"] > 0
    )


def misses_topics(payload: bytes, api_version: int) -> bool:
    """Whether a Metadata answer says of any topic that it does not exist.

    Raises:
        codec.CodecError: the bytes are no such answer.
    """
    start = response_body_offset(payload, ApiKey.METADATA, api_version)
    body = decode_response(ApiKey.METADATA, api_version, payload, start)
    return any(topic["error_code"] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION for topic in body["topics"])


def throttle_time_ms(payload: bytes, api_key: int, api_version: int) -> int:
    """For how long the broker reads nothing from the connection of this answer; 0 where it does not say.

    Raises:
        codec.CodecError: the bytes are no such answer.
    """
    place = _throttle_place(api_key, api_version)
    if place is None:
        return 0
    start = response_body_offset(payload, api_key, api_version)
    if place > 0:
        return int(decode_response(api_key, api_version, payload, start)[_THROTTLE])
    if len(payload) < start + 4:
        raise Truncated(start, _THROTTLE, "the answer ends before it")
    return int.from_bytes(payload[start : start + 4], "big", signed=True)


def refusal(request: Request, body: dict[str, Any], cluster: ClusterFacts, reason: str) -> bytes | None:
    """Our own answer to a read that waited too long; None: this version can carry no error, close the connection."""
    value = timeout_answer(request.api_key, request.api_version, body, cluster, reason)
    if value is None:
        return None
    return encode_response_payload(request, value)


def encode_response_payload(request: Request, value: dict[str, Any]) -> bytes:
    """The payload of an answer of our own to ``request``."""
    header = ResponseHeader(correlation_id=request.correlation_id)
    return encode_response_header(header, request.api_key, request.api_version) + encode_response(
        request.api_key, request.api_version, value
    )


@cache
def _throttle_place(api_key: int, api_version: int) -> int | None:
    """Which field of the answer is the throttle time; nearly always the first."""
    if api_version not in (known_versions(api_key) or ()):
        return None
    names = [field.name for field in response_table(api_key).body.untagged(api_version)]
    return names.index(_THROTTLE) if _THROTTLE in names else None
