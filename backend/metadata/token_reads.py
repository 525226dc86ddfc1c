"""DescribeDelegationToken (41): the tokens that a client may see, from what the broker acts upon."""

from collections.abc import Mapping
from typing import Any

from backend.metadata.authorizer import Access, Operation, Resource
from backend.metadata.reader import Reader
from backend.metadata.records import DelegationTokenRecord
from backend.metadata.tokens import TokenSettings
from backend.metadata.writes import Body
from codec.error_codes import ErrorCode


def describe_delegation_token(request: Mapping[str, Any], reader: Reader) -> Body:
    """DescribeDelegationToken (41): by whom it concerns, null for all; a client sees its own, and those it may."""
    if not reader.client.may_ask_for_tokens:
        return _answer(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, [])
    settings = reader.tokens
    if settings is None:
        return _answer(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, [])
    owners = None if request["owners"] is None else {_principal(owner) for owner in request["owners"]}
    tokens = (reader.acting.tokens.by_id[token_id] for token_id in sorted(reader.acting.tokens.by_id))
    found = [_described(token, settings) for token in tokens if _is_meant(token, owners, reader.access)]
    return _answer(ErrorCode.NONE, found)


def _answer(code: ErrorCode, tokens: list[Body]) -> Body:
    return {"error_code": code.value, "tokens": tokens, "throttle_time_ms": 0}


def _is_meant(token: DelegationTokenRecord, owners: set[str] | None, access: Access) -> bool:
    concerned = {token.owner, token.requester, *token.renewers}
    if owners is not None and not owners & concerned:
        return False
    return (
        access.client.principal in concerned
        or access.allows(Operation.DESCRIBE, Resource.DELEGATION_TOKEN, token.token_id)
        or access.allows(Operation.DESCRIBE_TOKENS, Resource.USER, token.owner)
    )


def _principal(fields: Mapping[str, Any]) -> str:
    return f"{fields['principal_type']}:{fields['principal_name']}"


def _described(token: DelegationTokenRecord, settings: TokenSettings) -> Body:
    owner_type, _, owner_name = token.owner.partition(":")
    requester_type, _, requester_name = token.requester.partition(":")
    renewers = [renewer.partition(":") for renewer in token.renewers]
    return {
        "principal_type": owner_type,
        "principal_name": owner_name,
        "token_requester_principal_type": requester_type,
        "token_requester_principal_name": requester_name,
        "issue_timestamp": token.issue_timestamp,
        "expiry_timestamp": token.expiration_timestamp,
        "max_timestamp": token.max_timestamp,
        "token_id": token.token_id,
        "hmac": settings.hmac(token.token_id),
        "renewers": [{"principal_type": of, "principal_name": name} for of, _, name in renewers],
    }
