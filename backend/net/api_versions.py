"""ApiVersions on any listener of the backend (KIP-511, KIP-584). Pure."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from backend.metadata.image import Image
from backend.net.offers import FEATURES
from codec import encode_response
from codec.api_keys import ApiKey
from codec.error_codes import ErrorCode
from codec.headers import ResponseHeader, encode_response_header

FIRST: Final = 0
LAST: Final = 4
_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.\-]*[a-zA-Z0-9])?")
"""What a client may call itself (KIP-511)."""


def api_versions(
    api_version: int, request: Mapping[str, Any], rows: Iterable[Mapping[str, Any]], image: Image
) -> dict[str, Any]:
    """The body; as on a KRaft node of Kafka, the epoch of the finalized features is the image's offset.

    Args:
        rows: API key, first and last version of all that this listener offers.
    """
    if api_version >= 3 and not all(
        _SOFTWARE.fullmatch(request[name]) for name in ("client_software_name", "client_software_version")
    ):
        return {"error_code": ErrorCode.INVALID_REQUEST}
    return {
        "error_code": ErrorCode.NONE,
        "api_keys": list(rows),
        "supported_features": [
            {
                "name": feature.name,
                "min_version": feature.min_supported_version,
                "max_version": feature.max_supported_version,
            }
            for feature in FEATURES
        ],
        "finalized_features_epoch": image.highest_offset,
        "finalized_features": [
            {"name": name, "max_version_level": level, "min_version_level": level}
            for name, level in sorted(image.features.items())
        ],
    }


def unsupported_api_versions(correlation_id: int) -> bytes:
    """The answer of v0 to a version that is not offered, with which a client chooses another."""
    row = {"api_key": int(ApiKey.API_VERSIONS), "min_version": FIRST, "max_version": LAST}
    body = encode_response(ApiKey.API_VERSIONS, 0, {"error_code": ErrorCode.UNSUPPORTED_VERSION, "api_keys": [row]})
    return encode_response_header(ResponseHeader(correlation_id=correlation_id), ApiKey.API_VERSIONS, 0) + body
