"""Tables as data: ranges of versions, fields, and what the constructors refuse."""

import pytest

from codec.api_keys import ApiKey
from codec.registry import request_table
from codec.schema import INT32, STRING, VERSION_MAX, Struct, Versions, array, field, request, struct


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [("0+", 0, VERSION_MAX), ("3+", 3, VERSION_MAX), ("0-3", 0, 3), ("4", 4, 4)],
)
def test_versions_are_read_in_kafkas_notation(text: str, first: int, last: int) -> None:
    assert Versions.parse(text) == Versions(first, last)


@pytest.mark.parametrize("text", ["", "none", "3-1", "-1", "1-", "+", "40000+"])
def test_what_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"range|invalid literal"):
        Versions.parse(text)


def test_a_range_includes_both_ends() -> None:
    assert [version for version in range(6) if version in Versions.parse("2-4")] == [2, 3, 4]


def test_fields_of_a_version_keep_wire_order_and_tags_ascend() -> None:
    of = Struct(
        (
            field("second_tag", INT32, "1+", tag=7),
            field("old", INT32, "0-1"),
            field("first_tag", INT32, "2+", tag=0),
            field("always", INT32),
        )
    )
    assert [f.name for f in of.untagged(1)] == ["old", "always"]
    assert [f.name for f in of.untagged(2)] == ["always"]
    assert [f.name for f in of.tagged(1)] == ["second_tag"]
    assert [f.name for f in of.tagged(2)] == ["first_tag", "second_tag"]


def test_nullable_true_means_in_all_versions_of_the_field() -> None:
    of = field("rack", STRING, "2+", nullable=True, default=None)
    assert [of.nullable_in(version) for version in (1, 2, 9)] == [False, True, True]
    assert not field("host", STRING).nullable_in(3)


def test_defaults_are_zero_empty_or_as_given() -> None:
    assert (field("a", INT32).default, field("b", STRING).default) == (0, "")
    assert field("c", INT32, default=-1).default == -1
    assert (array("d", INT32).default, struct("e", field("f", INT32)).default) == ((), ())
    assert array("g", INT32, nullable=True, default=None).default is None


def test_an_array_has_elements_of_one_type() -> None:
    with pytest.raises(ValueError, match="one type"):
        array("mixed", INT32, field("a", INT32))
    with pytest.raises(ValueError, match="one type"):
        array("nothing")


def test_a_message_says_what_it_is() -> None:
    message = request(ApiKey.METADATA, "0-13", field("a", INT32), flexible="9+")
    assert repr(message) == "<table of the METADATA request>"
    assert [version for version in message_versions() if message.is_flexible(version)] == [9, 10, 11, 12, 13]
    assert not request(ApiKey.SASL_HANDSHAKE, "0-1", flexible=None).is_flexible(1)


def message_versions() -> range:
    versions = request_table(ApiKey.METADATA).versions
    return range(versions.first, versions.last + 1)
