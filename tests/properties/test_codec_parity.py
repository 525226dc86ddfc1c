"""The compiled closures and the construct twin agree, on values and on bytes, and nothing but `CodecError` escapes."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codec.compiled import decoder, encoder
from codec.errors import CodecError, Truncated
from codec.reference import build, parse
from codec.schema import Table
from codec.skipping import skip, skip_program
from tests.support.message_values import every_record, every_table, messages

MODEST = settings(max_examples=150, deadline=None)


@MODEST
@given(messages())
def test_a_value_survives_and_both_twins_write_the_same(case: tuple[Table, int, dict[str, Any]]) -> None:
    message, version, value = case
    body = encoder(message, version)(value)
    assert build(message, version, value) == body
    assert decoder(message, version)(body, 0) == (value, len(body))
    assert parse(message, version, body) == value


@MODEST
@given(messages(), st.binary(max_size=9), st.binary(max_size=9))
def test_a_body_is_found_inside_a_buffer(case: tuple[Table, int, dict[str, Any]], before: bytes, after: bytes) -> None:
    message, version, value = case
    body = encoder(message, version)(value)
    decoded, end = decoder(message, version)(before + body + after, len(before))
    assert (decoded, end) == (value, len(before) + len(body))


@MODEST
@given(messages(), st.data())
def test_a_body_that_is_cut_short_is_truncated(case: tuple[Table, int, dict[str, Any]], data: st.DataObject) -> None:
    message, version, value = case
    body = encoder(message, version)(value)
    if not body:
        return
    kept = data.draw(st.integers(0, len(body) - 1))
    with pytest.raises(Truncated):
        decoder(message, version)(body[:kept], 0)


@MODEST
@given(messages(), st.data())
def test_both_twins_judge_damaged_bodies_alike(case: tuple[Table, int, dict[str, Any]], data: st.DataObject) -> None:
    message, version, value = case
    body = bytearray(encoder(message, version)(value))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(body)))
        body[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2))
    _judge_alike(message, version, bytes(body))


@settings(max_examples=300, deadline=None)
@given(st.sampled_from([*every_table(), *every_record()]), st.binary(max_size=60))
def test_both_twins_judge_arbitrary_bytes_alike(table: tuple[Table, int], body: bytes) -> None:
    _judge_alike(*table, body)


@MODEST
@given(messages())
def test_the_skipper_ends_where_the_decoder_ends(case: tuple[Table, int, dict[str, Any]]) -> None:
    message, version, value = case
    body = encoder(message, version)(value)
    program = skip_program(message.body.fields, version, message.is_flexible(version), tags=True)
    assert skip(body + b"more", 0, program, set(), "body") == len(body)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from([*every_table(), *every_record()]), st.binary(max_size=60))
def test_the_skipper_accepts_all_that_the_decoder_accepts(table: tuple[Table, int], body: bytes) -> None:
    message, version = table
    program = skip_program(message.body.fields, version, message.is_flexible(version), tags=True)
    try:
        _, end = decoder(message, version)(body, 0)
    except CodecError:
        end = -1
    try:
        skipped = skip(body, 0, program, set(), "body")
    except CodecError:
        skipped = -1
    assert end in (-1, skipped)


def _judge_alike(table: Table, version: int, body: bytes) -> None:
    compiled: Any = None
    try:
        compiled, end = decoder(table, version)(body, 0)
        if end != len(body):
            compiled = None
    except CodecError:
        pass
    try:
        reference: Any = parse(table, version, body)
    except CodecError:
        reference = None
    assert repr(compiled) == repr(reference)  # repr, because a NaN differs from itself
    if compiled is not None:
        encoded = encoder(table, version)(compiled)
        assert encoder(table, version)(decoder(table, version)(encoded, 0)[0]) == encoded
        assert build(table, version, compiled) == encoded
