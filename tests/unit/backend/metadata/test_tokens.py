"""Delegation tokens over time, which the comparison with Kafka does not wait for."""

from typing import Any

import pytest

from backend.metadata.tokens import DAY_MS, TokenSettings
from codec.api_keys import ApiKey
from codec.error_codes import ErrorCode
from tests.support.memory_backend import NOW_MS, MemoryBackend

HOUR_MS = 3_600_000


class Story:
    """A cluster with tokens, and ann, who has one."""

    def __init__(self, **asked: Any) -> None:
        self.settings = TokenSettings(secret="SECRET")
        self.backend = MemoryBackend(tokens=self.settings)
        body: dict[str, Any] = {
            "owner_principal_type": None,
            "owner_principal_name": None,
            "renewers": [],
            "max_lifetime_ms": -1,
        }
        self.token = self.ask(ApiKey.CREATE_DELEGATION_TOKEN, 3, {**body, **asked})

    def ask(self, api_key: ApiKey, version: int, body: dict[str, Any], user: str = "ann") -> dict[str, Any]:
        return self.backend.ask_as(user)(api_key, version, body)

    def pass_by(self, ms: int) -> None:
        self.backend.now_ms += ms

    def renew(self, period_ms: int) -> tuple[int, int]:
        body = {"hmac": self.token["hmac"], "renew_period_ms": period_ms}
        answer = self.ask(ApiKey.RENEW_DELEGATION_TOKEN, 2, body)
        return answer["error_code"], answer["expiry_timestamp_ms"]

    def expire(self, period_ms: int) -> tuple[int, int]:
        body = {"hmac": self.token["hmac"], "expiry_time_period_ms": period_ms}
        answer = self.ask(ApiKey.EXPIRE_DELEGATION_TOKEN, 2, body)
        return answer["error_code"], answer["expiry_timestamp_ms"]

    def seen(self) -> list[str]:
        answer = self.ask(ApiKey.DESCRIBE_DELEGATION_TOKEN, 3, {"owners": None})
        return [token["token_id"] for token in answer["tokens"]]


@pytest.mark.parametrize(
    ("asked", "lifetime_ms"), [(-1, 7 * DAY_MS), (0, 7 * DAY_MS), (5, 5), (99 * DAY_MS, 7 * DAY_MS)]
)
def test_a_token_lives_as_long_as_asked_but_never_longer_than_allowed(asked: int, lifetime_ms: int) -> None:
    token = Story(max_lifetime_ms=asked).token
    assert token["issue_timestamp_ms"] == NOW_MS
    assert token["max_timestamp_ms"] == NOW_MS + lifetime_ms
    assert token["expiry_timestamp_ms"] == NOW_MS + min(lifetime_ms, DAY_MS)


def test_a_token_that_is_renewed_lives_on_until_its_last_day() -> None:
    story = Story()
    last = story.token["max_timestamp_ms"]
    story.pass_by(HOUR_MS)
    assert story.renew(2 * HOUR_MS) == (0, NOW_MS + 3 * HOUR_MS)
    assert story.renew(-1) == (0, NOW_MS + HOUR_MS + DAY_MS)
    for _ in range(7):
        story.pass_by(DAY_MS - HOUR_MS)
        code, expiry = story.renew(-1)
    assert (code, expiry) == (0, last)
    story.pass_by(DAY_MS)
    assert story.renew(-1) == (ErrorCode.DELEGATION_TOKEN_EXPIRED, 0)
    assert story.expire(HOUR_MS) == (ErrorCode.DELEGATION_TOKEN_EXPIRED, 0)


def test_a_token_can_be_made_to_expire_earlier_or_at_once() -> None:
    story = Story()
    assert story.expire(5) == (0, NOW_MS + 5)
    assert story.seen() == [story.token["token_id"]]
    story.pass_by(6)
    assert story.renew(-1) == (ErrorCode.DELEGATION_TOKEN_EXPIRED, 0)
    assert story.expire(-1) == (0, NOW_MS + 6)
    assert story.seen() == []
    assert story.expire(-1) == (ErrorCode.DELEGATION_TOKEN_NOT_FOUND, 0)


def test_only_who_owns_a_token_or_is_its_renewer_makes_it_live_on_or_end() -> None:
    story = Story(renewers=[{"principal_type": "User", "principal_name": "bob"}])
    hmac = story.token["hmac"]
    found = {}
    for user in ("ann", "bob", "eve"):
        renewed = story.ask(ApiKey.RENEW_DELEGATION_TOKEN, 2, {"hmac": hmac, "renew_period_ms": -1}, user)
        expired = story.ask(ApiKey.EXPIRE_DELEGATION_TOKEN, 2, {"hmac": hmac, "expiry_time_period_ms": 5}, user)
        found[user] = (renewed["error_code"], expired["error_code"])
    refused = ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    assert found == {"ann": (0, 0), "bob": (0, 0), "eve": (refused, refused)}


def test_expired_tokens_go_with_the_next_write() -> None:
    story = Story(max_lifetime_ms=5)
    old = story.token["token_id"]
    story.pass_by(6)
    assert story.seen() == [old]
    body: dict[str, Any] = {
        "owner_principal_type": None,
        "owner_principal_name": None,
        "renewers": [],
        "max_lifetime_ms": -1,
    }
    new = story.ask(ApiKey.CREATE_DELEGATION_TOKEN, 3, body)["token_id"]
    assert story.seen() == [new]


def test_the_secret_and_what_comes_from_it_are_in_no_record() -> None:
    story = Story()
    (record,) = story.backend.image.tokens.by_id.values()
    assert "SECRET" not in repr((record, story.settings))
    assert story.settings.password(record.token_id) not in repr(record)
    assert story.settings.hmac(record.token_id) == story.token["hmac"]
