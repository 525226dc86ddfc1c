"""AlterUserScramCredentials (51): credentials are set and removed. Errors and messages are Kafka 4.4's.

A client sends the salted password; what the log keeps are the two keys derived from it (RFC 5802), with which a login
can be checked but not made.
"""

import hashlib
import hmac
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from backend.metadata.errors import ApiError
from backend.metadata.image import Image
from backend.metadata.records import RemoveUserScramCredentialRecord, UserScramCredentialRecord
from backend.metadata.scram import HASHES, ScramMechanism
from backend.metadata.writes import Outcome, WriteRequest, error_fields
from codec.error_codes import ErrorCode

ITERATIONS_MIN: Final = 4096
ITERATIONS_MAX: Final = 16384
_MECHANISMS: Final = frozenset(ScramMechanism)


def alter_user_scram_credentials(request: WriteRequest, image: Image) -> Outcome:
    """AlterUserScramCredentials (51); one result a user, and a user is changed once a request or not at all."""
    deletions: list[Mapping[str, Any]] = request.body["deletions"]
    upsertions: list[Mapping[str, Any]] = request.body["upsertions"]
    records: list[UserScramCredentialRecord | RemoveUserScramCredentialRecord] = []
    results: dict[str, ApiError | None] = {}
    counts = Counter(change["name"] for change in (*deletions, *upsertions))
    for change in (*deletions, *upsertions):
        name = change["name"]
        if name in results and results[name] is not None:
            continue
        try:
            if "iterations" in change:
                _check_upsertion(change)
            else:
                _check_deletion(change, image)
            if counts[name] > 1:
                raise ApiError(
                    ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request"
                )
            records.append(_credential(change) if "iterations" in change else _removal(change))
            results[name] = None
        except ApiError as error:
            results[name] = error
    return Outcome(
        records=tuple(records),
        response={
            "throttle_time_ms": 0,
            "results": [{"user": user, **error_fields(error)} for user, error in results.items()],
        },
    )


def _check_user(change: Mapping[str, Any]) -> None:
    if not change["name"]:
        raise ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if change["mechanism"] not in _MECHANISMS:
        raise ApiError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")


def _check_upsertion(change: Mapping[str, Any]) -> None:
    _check_user(change)
    if change["iterations"] < ITERATIONS_MIN:
        raise ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    if change["iterations"] > ITERATIONS_MAX:
        raise ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")


def _check_deletion(change: Mapping[str, Any], image: Image) -> None:
    _check_user(change)
    if image.scram.credential(change["name"], change["mechanism"]) is None:
        raise ApiError(ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist")


def _removal(change: Mapping[str, Any]) -> RemoveUserScramCredentialRecord:
    return RemoveUserScramCredentialRecord(name=change["name"], mechanism=change["mechanism"])


def _credential(change: Mapping[str, Any]) -> UserScramCredentialRecord:
    hash_name = HASHES[ScramMechanism(change["mechanism"])]
    salted_password = bytes(change["salted_password"])
    client_key = hmac.digest(salted_password, b"Client Key", hash_name)
    return UserScramCredentialRecord(
        name=change["name"],
        mechanism=change["mechanism"],
        salt=bytes(change["salt"]),
        stored_key=hashlib.new(hash_name, client_key).digest(),
        server_key=hmac.digest(salted_password, b"Server Key", hash_name),
        iterations=change["iterations"],
    )
