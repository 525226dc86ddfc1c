"""Delegation tokens: who may make, renew, expire and see them. alice is a super user, bob is not."""

from collections.abc import Iterator
from typing import Any, Final

from codec.api_keys import ApiKey
from tests.support.admin_cases.case import Body, Case, HmacOf

HOUR_MS: Final = 3_600_000
_OWNERS: Final = {"bob": [{"principal_type": "User", "principal_name": "bob"}]}


def _user(name: str, kind: str = "User") -> Body:
    return {"principal_type": kind, "principal_name": name}


def _create(name: str, user: str | None, version: int = 3, **more: Any) -> Case:
    body: Body = {"owner_principal_type": None, "owner_principal_name": None, "renewers": [], "max_lifetime_ms": -1}
    return Case(f"create token: {name}", ApiKey.CREATE_DELEGATION_TOKEN, version, {**body, **more}, user)


def _for(name: str, kind: str = "User") -> Body:
    return {"owner_principal_type": kind, "owner_principal_name": name}


def _renew(name: str, user: str | None, token: str | bytes, period_ms: int = HOUR_MS, version: int = 2) -> Case:
    hmac = HmacOf(f"create token: {token}") if isinstance(token, str) else token
    body: Body = {"hmac": hmac, "renew_period_ms": period_ms}
    return Case(f"renew token: {name}", ApiKey.RENEW_DELEGATION_TOKEN, version, body, user)


def _expire(name: str, user: str | None, token: str | bytes, period_ms: int = HOUR_MS, version: int = 2) -> Case:
    hmac = HmacOf(f"create token: {token}") if isinstance(token, str) else token
    body: Body = {"hmac": hmac, "expiry_time_period_ms": period_ms}
    return Case(f"expire token: {name}", ApiKey.EXPIRE_DELEGATION_TOKEN, version, body, user)


def _describe(name: str, user: str | None, owners: list[Body] | None, version: int = 3) -> Case:
    return Case(f"describe tokens: {name}", ApiKey.DESCRIBE_DELEGATION_TOKEN, version, {"owners": owners}, user)


def tokens() -> Iterator[Case]:
    """Tokens come and go."""
    for version in (1, 2, 3):
        yield _create(f"nobody, v{version}", None, version=version)
    yield _renew("nobody", None, b"no such token")
    yield _expire("nobody", None, b"no such token")
    yield _describe("none", "bob", None)
    yield _create("bob's", "bob", renewers=[_user("alice")])
    yield _create("alice's, v2", "alice", version=2, max_lifetime_ms=HOUR_MS)
    yield _create("alice's, v1", "alice", version=1, renewers=[_user("bob"), _user("eve")])
    yield _create("for bob by alice", "alice", **_for("bob"))
    yield _create("for bob by bob", "bob", **_for("bob"))
    yield _create("for carol by bob", "bob", **_for("carol"))
    yield _create("for a group by alice", "alice", **_for("staff", "Group"))
    yield _create("for nobody by name", "alice", **_for(""))
    yield _create("renewed by a group", "bob", renewers=[_user("eve"), _user("staff", "Group")])
    for version in (1, 2, 3):
        yield _describe(f"bob, all, v{version}", "bob", None, version)
        yield _describe(f"alice, all, v{version}", "alice", None, version)
    yield _describe("alice, bob's", "alice", [_user("bob")])
    yield _describe("bob, bob's", "bob", [_user("bob")])
    yield _describe("bob, alice's", "bob", [_user("alice")])
    yield _describe("bob, of nobody", "bob", [])
    yield _describe("bob, of a stranger", "bob", [_user("nobody")])
    yield _renew("by its owner", "bob", "bob's")
    yield _renew("by a renewer, v1", "alice", "bob's", version=1)
    yield _renew("for as long as possible", "bob", "bob's", -1)
    yield _renew("by a stranger", "bob", "alice's, v2")
    yield _renew("unknown", "bob", b"no such token")
    yield _renew("without an HMAC", "bob", b"")
    yield _expire("later", "bob", "bob's")
    yield _expire("by a renewer, v1", "bob", "alice's, v1", version=1)
    yield _expire("by a stranger", "bob", "alice's, v2")
    yield _expire("unknown", "bob", b"no such token")
    yield _expire("at once", "bob", "bob's", -1)
    yield _expire("by a super user that is no renewer", "alice", "for bob by bob", -1)
    yield _describe("what is left, alice", "alice", None)
    yield _describe("what is left, bob", "bob", None)
