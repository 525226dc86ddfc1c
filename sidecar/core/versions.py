"""What the sidecar advertises: the broker's ApiVersions answer, less what we cannot pass on faithfully (proxying.md 4).

Nothing is capped below what Kafka 4.4 offers. Versions newer than our tables are hidden only for the APIs whose answers
carry addresses; everything else passes as opaque frames in any version.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from codec import CodecError, decode_response, encode_response
from codec.api_keys import ApiKey
from codec.error_codes import ErrorCode
from codec.headers import ResponseHeader, encode_response_header
from codec.registry import known_versions
from codec.splice import replace_api_keys
from codec.walk import WALKED

REWRITTEN: Final = frozenset({ApiKey.METADATA, ApiKey.FIND_COORDINATOR, ApiKey.DESCRIBE_CLUSTER, *WALKED})
"""Requests whose answers carry addresses."""

_NEWEST: Final[dict[int, int]] = {
    int(key): versions[-1] for key in REWRITTEN if (versions := known_versions(key)) is not None
}
READ_HERE: Final = frozenset({*REWRITTEN, ApiKey.API_VERSIONS})
"""Requests whose answers cannot pass as they come."""
_ERROR_CODE_BYTES: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What one ApiVersions answer says.

    Attributes:
        error_code: 35 with the body of version 0 when the version asked for is unknown to the broker.
        versions: API key to (lowest, highest).
        position: offset of the broker's metadata image; None where the answer has no such field.
    """

    error_code: int
    versions: Mapping[int, tuple[int, int]]
    position: int | None


def read_offer(payload: bytes, api_version: int, body_offset: int) -> Offer:
    """Reads an ApiVersions answer; the error comes first, since the body may be that of version 0.

    Raises:
        codec.CodecError: the bytes are no such answer.
    """
    body = decode_response(ApiKey.API_VERSIONS, _body_version(payload, api_version, body_offset), payload, body_offset)
    return Offer(
        error_code=body["error_code"],
        versions=MappingProxyType(
            {api["api_key"]: (api["min_version"], api["max_version"]) for api in body["api_keys"]}
        ),
        position=body.get("finalized_features_epoch"),
    )


def narrow_offer(payload: bytes, api_version: int, body_offset: int) -> bytes:
    """The ApiVersions answer as clients may see it; every byte that need not change stays.

    Raises:
        codec.CodecError: the bytes are no such answer.
    """
    return replace_api_keys(payload, _body_version(payload, api_version, body_offset), body_offset, _narrow)


def is_unreadable(api_key: int, api_version: int) -> bool:
    """Whether the answer would carry addresses that we cannot find. Our offer excludes such versions."""
    return api_version > _NEWEST.get(api_key, api_version)


def refuse_offer(correlation_id: int) -> bytes:
    """The answer to an ApiVersions request newer than ours: v0, error 35, and the range that we speak (KIP-511)."""
    ours = known_versions(ApiKey.API_VERSIONS)
    assert ours is not None, "the codec describes ApiVersions"
    header = ResponseHeader(correlation_id=correlation_id)
    offer = {"api_key": ApiKey.API_VERSIONS, "min_version": ours[0], "max_version": ours[-1]}
    return encode_response_header(header, ApiKey.API_VERSIONS, 0) + encode_response(
        ApiKey.API_VERSIONS, 0, {"error_code": ErrorCode.UNSUPPORTED_VERSION, "api_keys": [offer]}
    )


def is_unreadable_offer(api_key: int, api_version: int) -> bool:
    """Whether we could not narrow the answer to this ApiVersions request: `refuse_offer` makes the client ask again."""
    ours = known_versions(ApiKey.API_VERSIONS)
    return api_key == ApiKey.API_VERSIONS and ours is not None and api_version not in ours


def _body_version(payload: bytes, api_version: int, body_offset: int) -> int:
    if len(payload) < body_offset + _ERROR_CODE_BYTES:
        raise CodecError(body_offset, "error_code", "the answer ends before it")
    error = int.from_bytes(payload[body_offset : body_offset + _ERROR_CODE_BYTES], "big", signed=True)
    return 0 if error == ErrorCode.UNSUPPORTED_VERSION else api_version


def _narrow(api_keys: list[dict[str, Any]]) -> list[dict[str, Any]]:
    kept = []
    for api in api_keys:
        ours = known_versions(api["api_key"]) if api["api_key"] in READ_HERE else None
        if ours is not None:
            api["max_version"] = min(api["max_version"], ours[-1])
            if api["max_version"] < api["min_version"]:
                continue
        kept.append(api)
    return kept
