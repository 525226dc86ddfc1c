"""Addresses, ranges, numbers, flags and text: what is taken, and the words of every refusal."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from config.values import (
    PORT_MAX,
    TEXT_LENGTH_MAX,
    File,
    Flag,
    HostPort,
    PortRange,
    Text,
    Whole,
    may_collide,
    parse_reachable_host,
)

ports = st.integers(1, PORT_MAX)


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("127.0.0.1:9092", "127.0.0.1", 9092),
        ("kafka-1.example.org:1", "kafka-1.example.org", 1),
        ("broker_1:65535", "broker_1", 65535),
        ("[::1]:9092", "::1", 9092),
        ("[fe80::1%eth0]:9092", "fe80::1%eth0", 9092),
        ("localhost.:9092", "localhost.", 9092),
    ],
)
def test_an_address_is_read_and_written_alike(text: str, host: str, port: int) -> None:
    address = HostPort.parse(text)
    assert (address.host, address.port) == (host, port)
    assert str(address) == text


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("kafka", "must be HOST:PORT"),
        (":9092", "must be HOST:PORT"),
        ("kafka:", "must have a port from 1 to 65535"),
        ("kafka:x", "must have a port from 1 to 65535"),
        ("kafka:-1", "must have a port from 1 to 65535"),
        ("kafka:0", "port must be between 1 and 65535"),
        ("kafka:65536", "port must be between 1 and 65535"),
        ("kafka:\u0669\u0660", "must have a port from 1 to 65535"),
        ("PLAINTEXT://kafka:9092", "must be HOST:PORT, without a scheme"),
        ("::1:9092", "must have the IPv6 address in brackets: [ADDRESS]:PORT"),
        ("[kafka]:9092", "must have an IPv6 address between the brackets"),
        ("[127.0.0.1]:9092", "must have an IPv6 address between the brackets"),
        ("ka fka:9092", "must have a host name or an IP address"),
        ("-kafka:9092", "must have a host name or an IP address"),
        ("a..b:9092", "must have a host name or an IP address"),
        (f"{'a' * 254}:9092", "must have a host name or an IP address"),
    ],
)
def test_a_wrong_address_says_what_is_due(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        HostPort.parse(text)
    assert str(caught.value) == reason


@given(first=ports, last=ports)
def test_a_range_holds_its_ends_and_all_between(first: int, last: int) -> None:
    if first > last:
        with pytest.raises(ValueError, match="must be ascending"):
            PortRange.parse(f"{first}-{last}")
        return
    span = PortRange.parse(f"{first}-{last}")
    assert len(span) == last - first + 1
    assert first in span
    assert last in span
    assert first - 1 not in span
    assert last + 1 not in span
    assert PortRange.parse(str(span)) == span


@given(one=st.tuples(ports, ports).map(sorted), other=st.tuples(ports, ports).map(sorted))
def test_ranges_overlap_when_they_share_a_port(one: list[int], other: list[int]) -> None:
    shared = set(range(one[0], one[1] + 1)) & set(range(other[0], other[1] + 1))
    assert PortRange(*one).overlaps(PortRange(*other)) == bool(shared)


@pytest.mark.parametrize("text", ["19101", "19101-", "-19101", "0-5", "5-65536", "5-4", "a-b", "1-2-3"])
def test_a_wrong_range_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must"):
        PortRange.parse(text)


@pytest.mark.parametrize(
    ("one", "other", "collide"),
    [
        ("127.0.0.1", "127.0.0.1", True),
        ("127.0.0.1", "10.0.0.1", False),
        ("0.0.0.0", "10.0.0.1", True),
        ("10.0.0.1", "::", True),
        ("::1", "0:0:0:0:0:0:0:1", True),
        ("::1", "::2", False),
        ("localhost", "10.0.0.1", True),
    ],
)
def test_only_two_different_ip_addresses_cannot_collide(one: str, other: str, collide: bool) -> None:
    assert may_collide(one, other) is collide
    assert may_collide(other, one) is collide


@pytest.mark.parametrize("text", ["0.0.0.0", "::", "[::]", "0:0::0"])
def test_clients_are_never_sent_to_a_wildcard(text: str) -> None:
    with pytest.raises(ValueError, match="wildcard"):
        parse_reachable_host(text)
    assert parse_reachable_host("[::1]") == "::1"


@pytest.mark.parametrize(("value", "number"), [(1, 1), (9, 9), ("7", 7), ("+7", 7), ("007", 7)])
def test_a_number_may_come_as_text(value: object, number: int) -> None:
    assert Whole(1, 9).check(value) == number


@pytest.mark.parametrize("value", [True, False, None, 1.0, "1.0", "1e0", "1_0", "", " 1", "x", "\u0667", "1" * 40, [1]])
def test_what_is_no_whole_number_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="must be a whole number"):
        Whole(0, 10**50).check(value)


@pytest.mark.parametrize("value", [0, 10, "0", "10", -1])
def test_a_number_out_of_bounds_is_told_both_bounds(value: object) -> None:
    with pytest.raises(ValueError, match="must be between 1 and 9"):
        Whole(1, 9).check(value)


@pytest.mark.parametrize(("value", "flag"), [(True, True), (False, False), ("true", True), ("false", False)])
def test_a_flag_may_come_as_text(value: object, flag: bool) -> None:
    assert TypeAdapter[bool](Flag).validate_python(value) is flag


@pytest.mark.parametrize("value", ["yes", "on", "True", "", 1, 0, None])
def test_what_is_no_flag_is_refused(value: object) -> None:
    with pytest.raises(ValidationError, match="must be true or false"):
        TypeAdapter[bool](Flag).validate_python(value)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (5, "must be text; put it in quotes"),
        (True, "must be text; put it in quotes"),
        (None, "must not be empty"),
        ("", "must not be empty"),
        ([], "must be text"),
        ("a\nb", "must not contain control characters"),
        ("a" * (TEXT_LENGTH_MAX + 1), f"must be at most {TEXT_LENGTH_MAX} characters"),
    ],
)
def test_wrong_text_says_why(value: object, reason: str) -> None:
    with pytest.raises(ValidationError) as caught:
        TypeAdapter[str](Text).validate_python(value)
    assert str(caught.value.errors()[0]["ctx"]["error"]) == reason


def test_a_file_is_a_path_and_is_not_opened() -> None:
    assert TypeAdapter[Path](File).validate_python("/nowhere/secret") == Path("/nowhere/secret")
