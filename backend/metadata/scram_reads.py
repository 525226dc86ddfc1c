"""DescribeUserScramCredentials (50): who has credentials for which mechanism. Errors and messages are Kafka 4.4's."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from backend.metadata.reader import Reader
from backend.metadata.writes import Body
from codec.error_codes import ErrorCode


def describe_user_scram_credentials(request: Mapping[str, Any], reader: Reader) -> Body:
    """DescribeUserScramCredentials (50); null and an empty list both mean all users."""
    users = reader.image.scram.users
    counts = Counter(user["name"] for user in request["users"] or ()) or dict.fromkeys(users, 1)
    return {
        "throttle_time_ms": 0,
        "error_code": ErrorCode.NONE.value,
        "error_message": "",
        "results": [_result(user, counts[user], reader) for user in sorted(counts)],
    }


def _result(user: str, count: int, reader: Reader) -> Body:
    credentials = reader.image.scram.users.get(user)
    code, message = ErrorCode.NONE, ""
    if count > 1:
        code = ErrorCode.DUPLICATE_RESOURCE
        message = f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}"
    elif credentials is None:
        code = ErrorCode.RESOURCE_NOT_FOUND
        message = f"Attempt to describe a user credential that does not exist: {user}"
    shown = {} if code is not ErrorCode.NONE or credentials is None else credentials
    return {
        "user": user,
        "error_code": code.value,
        "error_message": message,
        "credential_infos": [
            {"mechanism": mechanism, "iterations": shown[mechanism].iterations} for mechanism in sorted(shown)
        ],
    }
