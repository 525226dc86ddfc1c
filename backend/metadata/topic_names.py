"""Which names topics may have; Kafka's rule and its words."""

import re
from typing import Final

from backend.metadata.errors import ApiError
from codec.error_codes import ErrorCode

NAME_LENGTH_MAX: Final = 249
_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]+")


def validate_topic_name(name: str) -> None:
    """Check a name.

    Raises:
        ApiError: INVALID_TOPIC_EXCEPTION.
    """
    reason = _fault(name)
    if reason is not None:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {reason}")


def is_valid_topic_name(name: str) -> bool:
    """Whether a topic may have the name."""
    return _fault(name) is None


def _fault(name: str) -> str | None:
    if not name:
        return "the empty string is not allowed"
    if name in (".", ".."):
        return f"'{name}' is not allowed"
    if len(name) > NAME_LENGTH_MAX:
        return f"the length of '{name}' is longer than the max allowed length {NAME_LENGTH_MAX}"
    if not _LEGAL.fullmatch(name):
        return f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    return None
