"""From the bytes of a request to what the guarantee needs to know of it.

Reads no more than it must: plain requests are known by their key, writes by their header. Gated reads are decoded:
to see whether one may create topics or asks about a broker, and because they may share a connection with others.
"""

from functools import lru_cache
from typing import Any, Final, NamedTuple, final

from codec import encode_request
from codec.api_keys import ApiKey
from codec.compiled import decoder
from codec.headers import ConsistencyState, client_id_of, peek_request, request_body_offset, request_state
from codec.registry import known_versions, request_table
from sidecar.core.apis import TRAITS, Kind
from sidecar.core.exchange import Request
from sidecar.core.passing import UnsupportedVersion
from sidecar.core.sessions import Scope, session_name

_FIRST_METADATA_WITH_FLAG: Final = 4
"""Below this version a Metadata request has no ``allow_auto_topic_creation``: it always may create."""
_BROKER_RESOURCES: Final = frozenset({4, 8})
"""ConfigResource.Type BROKER and BROKER_LOGGER: only the broker itself knows its dynamic configuration."""


REMEMBERED_MAX: Final = 256
"""How many different reads are remembered."""
REMEMBERED_BYTES_MAX: Final = 512
"""How large one of them may be."""
_NO_CORRELATION_ID: Final = bytes(4)


def read_request(payload: bytes, scope: Scope, connection_id: int) -> Request:
    """Takes a gated request apart (`sidecar.core.passing.Passing.GATED`).

    Raises:
        codec.CodecError: the bytes are no such request.
        UnsupportedVersion: of an API that carries addresses.
    """
    api_key, api_version, correlation_id = peek_request(payload)
    traits = TRAITS[api_key]
    request = Request(
        api_key=api_key,
        api_version=api_version,
        correlation_id=correlation_id,
        kind=traits.kind,
        trace=traits.trace,
        session_name=session_name(scope, connection_id, client_id_of(payload) if scope is Scope.CLIENT_ID else None),
        pinned=traits.pinned,
        effective=traits.effective,
        payload=payload,
    )
    if traits.kind is Kind.READ:
        without_id = b"".join((payload[:4], _NO_CORRELATION_ID, payload[8:]))
        say = _said_before if len(payload) <= REMEMBERED_BYTES_MAX else _said
        request.kind, request.pinned, request.effective, request.may_create, request.state = say(without_id)
    elif api_key == ApiKey.FIND_COORDINATOR and not _known(request):
        raise UnsupportedVersion
    return request


def request_body(request: Request) -> dict[str, Any]:
    """The decoded body of a gated request.

    Raises:
        codec.CodecError: the bytes are no such request.
    """
    payload = request.payload
    return _read_body(request, request_body_offset(payload))[0]


def as_pure_read(request: Request) -> bytes:
    """The Metadata request with topic creation turned off."""
    payload = request.payload
    start = request_body_offset(payload)
    body, end = _read_body(request, start)
    body["allow_auto_topic_creation"] = False
    return b"".join((payload[:start], encode_request(request.api_key, request.api_version, body), payload[end:]))


@final
class _Said(NamedTuple):
    """What a gated read says that `sidecar.core.apis` does not know; see `Request`."""

    kind: Kind
    pinned: bool
    effective: bool
    may_create: bool
    state: ConsistencyState | None


def _said(payload: bytes) -> _Said:
    api_key, api_version, _ = peek_request(payload)
    traits = TRAITS[api_key]
    request = Request(
        api_key=api_key,
        api_version=api_version,
        kind=traits.kind,
        trace=traits.trace,
        pinned=traits.pinned,
        effective=traits.effective,
        payload=payload,
    )
    if api_key == ApiKey.METADATA:
        _read_metadata(request)
    elif api_key == ApiKey.DESCRIBE_CLUSTER and not _known(request):
        raise UnsupportedVersion
    else:
        _read_others(request)
    return _Said(request.kind, request.pinned, request.effective, request.may_create, request_state(payload))


_said_before: Final = lru_cache(maxsize=REMEMBERED_MAX)(_said)
"""Clients ask the same again and again, and only the correlation id changes."""


def _read_body(request: Request, start: int) -> tuple[dict[str, Any], int]:
    """The body and where it ends. Brokers ignore what comes after (librdkafka's Metadata has three bytes too many)."""
    return decoder(request_table(request.api_key), request.api_version)(request.payload, start)


def _read_metadata(request: Request) -> None:
    if not _known(request):
        raise UnsupportedVersion
    body = request_body(request)
    topics = body["topics"]
    # Version 0 has no null: an empty list asks for all topics, and neither that nor a topic id creates any.
    named = any(topic.get("name") is not None for topic in topics or ())
    if not (named and body.get("allow_auto_topic_creation", True)):
        return
    if request.api_version < _FIRST_METADATA_WITH_FLAG:
        request.kind = Kind.CREATE
    else:
        request.may_create = True


def _read_others(request: Request) -> None:
    """A broker hangs up on bytes that it cannot read, and other clients' reads share the way there: none may pass."""
    if not _known(request):
        request.pinned = True
        return
    body = request_body(request)
    if request.api_key == ApiKey.DESCRIBE_CONFIGS and any(
        resource["resource_type"] in _BROKER_RESOURCES for resource in body["resources"]
    ):
        request.pinned = request.effective = True


def _known(request: Request) -> bool:
    versions = known_versions(request.api_key)
    return versions is not None and request.api_version in versions
