"""Create-, Renew- and ExpireDelegationToken (38 to 40): tokens come and go (KIP-48, KIP-373). Errors are Kafka 4.4's.

Tokens that have expired are removed with the next of these writes.
"""

import base64
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from backend.metadata.authorizer import Operation, Resource
from backend.metadata.config_keys import LONG_MAX
from backend.metadata.errors import ApiError
from backend.metadata.image import Image
from backend.metadata.records import DelegationTokenRecord, RemoveDelegationTokenRecord
from backend.metadata.tokens import TokenSettings, is_expired
from backend.metadata.writes import Body, Outcome, WriteContext, WriteRequest
from codec.error_codes import ErrorCode

USER_TYPE: Final = "User"
_NO_TIME: Final = -1

TokenRecords = tuple[DelegationTokenRecord | RemoveDelegationTokenRecord, ...]


def create_delegation_token(request: WriteRequest, image: Image, context: WriteContext) -> Outcome:
    """CreateDelegationToken (38); from v3 on for somebody else, if the client may create tokens for that user."""
    requester = request.client.principal
    owner = requester
    if request.body.get("owner_principal_name"):
        owner = _principal(request.body["owner_principal_type"] or "", request.body["owner_principal_name"])
    answer: Body = {
        "error_code": ErrorCode.NONE.value,
        **_named("principal", owner),
        **_named("token_requester_principal", requester),
        "issue_timestamp_ms": _NO_TIME,
        "expiry_timestamp_ms": _NO_TIME,
        "max_timestamp_ms": _NO_TIME,
        "token_id": "",
        "hmac": b"",
        "throttle_time_ms": 0,
    }
    renewers = request.body["renewers"]
    try:
        _check_client(request)
        access = context.access(request.client, image)
        if owner != requester and not access.allows(Operation.CREATE_TOKENS, Resource.USER, owner):
            raise ApiError(ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED, None)
        if any(renewer["principal_type"] != USER_TYPE for renewer in renewers):
            raise ApiError(ErrorCode.INVALID_PRINCIPAL_TYPE, None)
        if context.tokens is None:
            answer |= dict.fromkeys(("issue_timestamp_ms", "expiry_timestamp_ms", "max_timestamp_ms"), 0)
        settings = _settings(context)
    except ApiError as error:
        return Outcome(records=(), response={**answer, "error_code": error.code.value})
    asked = request.body["max_lifetime_ms"]
    lifetime_ms = min(settings.max_lifetime_ms, asked) if asked > 0 else settings.max_lifetime_ms
    max_timestamp = context.now_ms + lifetime_ms
    token = DelegationTokenRecord(
        owner=owner,
        requester=requester,
        renewers=tuple(_principal(r["principal_type"], r["principal_name"]) for r in renewers),
        issue_timestamp=context.now_ms,
        max_timestamp=max_timestamp,
        expiration_timestamp=min(max_timestamp, context.now_ms + settings.expiry_time_ms),
        token_id=base64.urlsafe_b64encode(context.new_uuid()).decode().rstrip("="),
    )
    answer |= {
        "issue_timestamp_ms": token.issue_timestamp,
        "expiry_timestamp_ms": token.expiration_timestamp,
        "max_timestamp_ms": token.max_timestamp,
        "token_id": token.token_id,
        "hmac": settings.hmac(token.token_id),
    }
    return Outcome(records=(*_removals(image, context), token), response=answer)


def renew_delegation_token(request: WriteRequest, image: Image, context: WriteContext) -> Outcome:
    """RenewDelegationToken (39): by the owner or a renewer; a period of 0 or less means the longest."""

    def renewed(token: DelegationTokenRecord, settings: TokenSettings) -> tuple[TokenRecords, int]:
        if is_expired(token, context.now_ms):
            raise ApiError(ErrorCode.DELEGATION_TOKEN_EXPIRED, None)
        _check_may_renew(token, request.client.principal)
        asked = request.body["renew_period_ms"]
        period_ms = min(settings.expiry_time_ms, asked) if asked > 0 else settings.expiry_time_ms
        return _expiring(token, context.now_ms + period_ms)

    return _changed(request, image, context, renewed)


def expire_delegation_token(request: WriteRequest, image: Image, context: WriteContext) -> Outcome:
    """ExpireDelegationToken (40): by the owner or a renewer; a negative period removes the token at once."""

    def expired(token: DelegationTokenRecord, _: TokenSettings) -> tuple[TokenRecords, int]:
        _check_may_renew(token, request.client.principal)
        period_ms = request.body["expiry_time_period_ms"]
        if period_ms < 0:
            return (RemoveDelegationTokenRecord(token_id=token.token_id),), context.now_ms
        if is_expired(token, context.now_ms):
            raise ApiError(ErrorCode.DELEGATION_TOKEN_EXPIRED, None)
        return _expiring(token, min(context.now_ms + period_ms, LONG_MAX))

    return _changed(request, image, context, expired)


def _changed(
    request: WriteRequest,
    image: Image,
    context: WriteContext,
    change: Callable[[DelegationTokenRecord, TokenSettings], tuple[TokenRecords, int]],
) -> Outcome:
    answer: Body = {"error_code": ErrorCode.NONE.value, "expiry_timestamp_ms": 0, "throttle_time_ms": 0}
    try:
        _check_client(request)
    except ApiError as error:
        refused = {**answer, "error_code": error.code.value, "expiry_timestamp_ms": _NO_TIME}
        return Outcome(records=(), response=refused)
    try:
        settings = _settings(context)
        wanted = bytes(request.body["hmac"])
        token = next((t for t in image.tokens.by_id.values() if settings.hmac(t.token_id) == wanted), None)
        if token is None:
            raise ApiError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND, None)
        records, expiry_timestamp = change(token, settings)
    except ApiError as error:
        return Outcome(records=(), response={**answer, "error_code": error.code.value})
    others = tuple(record for record in _removals(image, context) if record.token_id != token.token_id)
    return Outcome(records=(*others, *records), response={**answer, "expiry_timestamp_ms": expiry_timestamp})


def _check_client(request: WriteRequest) -> None:
    if not request.client.may_ask_for_tokens:
        raise ApiError(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, None)


def _settings(context: WriteContext) -> TokenSettings:
    if context.tokens is None:
        raise ApiError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, None)
    return context.tokens


def _check_may_renew(token: DelegationTokenRecord, principal: str) -> None:
    if principal not in (token.owner, *token.renewers):
        raise ApiError(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH, None)


def _expiring(token: DelegationTokenRecord, at_ms: int) -> tuple[TokenRecords, int]:
    expiry_timestamp = min(token.max_timestamp, at_ms)
    return (replace(token, expiration_timestamp=expiry_timestamp),), expiry_timestamp


def _removals(image: Image, context: WriteContext) -> tuple[RemoveDelegationTokenRecord, ...]:
    return tuple(RemoveDelegationTokenRecord(token_id=t.token_id) for t in image.tokens.expired(context.now_ms))


def _principal(principal_type: str, name: str) -> str:
    return f"{principal_type}:{name}"


def _named(field: str, principal: str) -> Mapping[str, Any]:
    principal_type, _, name = principal.partition(":")
    return {f"{field}_type": principal_type, f"{field}_name": name}
