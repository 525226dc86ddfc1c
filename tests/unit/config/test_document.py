"""YAML to plain values and lines: what is read, what is refused, and that nothing gets out but a Document."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.document import DEPTH_MAX, DOCUMENT_BYTES_MAX, NODES_MAX, SCALAR_LENGTH_MAX, Document, Plain, read_document
from config.faults import dotted


def read(text: str, **environment: str) -> Document:
    return read_document(text, "f.yaml", environment)


def faults(text: str, **environment: str) -> list[str]:
    return [str(fault) for fault in read(text, **environment).faults]


@pytest.mark.parametrize(
    ("scalar", "value"),
    [
        ("", None),
        ("~", None),
        ("null", None),
        ("true", True),
        ("False", False),
        ("yes", "yes"),
        ("off", "off"),
        ("3000", 3000),
        ("-5", -5),
        ("010", 10),
        ("0x10", "0x10"),
        ("1_000", "1_000"),
        ("1.5", "1.5"),
        ("19:30", "19:30"),
        ("2001-12-14", "2001-12-14"),
        ("19101-19199", "19101-19199"),
        ("'3000'", "3000"),
        ('"null"', "null"),
        ("9" * 30, "9" * 30),
    ],
)
def test_scalars_follow_the_core_schema(scalar: str, value: Plain) -> None:
    document = read(f"key: {scalar}")
    assert document.faults == ()
    assert document.value == {"key": value}
    assert isinstance(document.value, dict)
    assert type(document.value["key"]) is type(value)


def test_every_key_and_entry_has_its_line() -> None:
    document = read("# comment\na:\n  b: [1,\n      {c: 2}]\n\nd: |\n  text\n")
    assert document.value == {"a": {"b": [1, {"c": 2}]}, "d": "text\n"}
    assert {dotted(path): line for path, line in document.lines.items()} == {
        "a": 2,
        "a.b": 3,
        "a.b[0]": 3,
        "a.b[1]": 4,
        "a.b[1].c": 4,
        "d": 6,
    }
    assert document.line(("a", "b", 7, "nothing")) == 3
    assert document.line(("nothing",)) == 1


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n", "---\n", "--- {}\n"])
def test_an_empty_document_has_no_keys(text: str) -> None:
    document = read(text)
    assert document.faults == ()
    assert document.value in ({}, None)


def test_variables_become_text() -> None:
    document = read("a: ${PORT}\nb: 'x-${HOST}:${PORT}'\nc: $${PORT} $HOME ${EMPTY}\n", PORT="12", HOST="h", EMPTY="")
    assert document.faults == ()
    assert document.value == {"a": "12", "b": "x-h:12", "c": "${PORT} $HOME "}


def test_a_variable_s_value_is_not_looked_into_again() -> None:
    assert read("a: ${ONE}", ONE="${TWO}", TWO="2").value == {"a": "${TWO}"}


def test_variables_in_keys_stay() -> None:
    assert read('"${ONE}": 1', ONE="x").value == {"${ONE}": 1}


def test_faulty_variables_are_named_and_spare_their_key_further_faults() -> None:
    document = read("a: ${GONE}-${ALSO_GONE}-${GONE}\nb: ['${']\nc: ${9}\n")
    form = "`${` must be followed by a variable's name and `}`; write `$${` for the text `${`"
    assert [str(fault) for fault in document.faults] == [
        "f.yaml:1: a: environment variable GONE is not set",
        "f.yaml:1: a: environment variable ALSO_GONE is not set",
        f"f.yaml:2: b[0]: {form}",
        f"f.yaml:3: c: {form}",
    ]
    assert document.is_faulty(("a",))
    assert document.is_faulty(("b", 0))
    assert not document.is_faulty(("b",))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("a: 1\nb: 2\na: 3\n", "f.yaml:3: a: duplicate key; it is already on line 1"),
        ("a: &x 1\nb: *x\n", "f.yaml:2: b: aliases (`*name`) are not accepted; write the value out"),
        ("a: !!python/name:os.system x\n", "f.yaml:1: a: tags (`!name`) are not accepted"),
        ("a: !!str 5\n", "f.yaml:1: a: tags (`!name`) are not accepted"),
        ("[a, b]: 1\n", "f.yaml:1: keys must be plain words"),
        ("a: 1\n---\nb: 2\n", "f.yaml:2: must be a single document; remove the line `---` and all below it"),
        ("a: [1\nb: 2\n", "f.yaml:2: not YAML: expected ',' or ']', but got ':'"),
        ("a:\n\t- 1\n", "f.yaml:2: not YAML: indent with spaces, not tabs"),
        ("a: 1\nb: \x07\n", "f.yaml:2: not YAML: character U+0007 is not allowed"),
        ("a: *gone\n", "f.yaml:1: a: aliases (`*name`) are not accepted; write the value out"),
    ],
)
def test_what_is_refused_has_its_line(text: str, fault: str) -> None:
    assert faults(text) == [fault]


def test_the_first_of_two_equal_keys_keeps_its_lines() -> None:
    document = read("a:\n  b: 1\na:\n  b: 2\n  c: 3\n")
    assert document.value == {"a": {"b": 1}}
    assert document.line(("a", "b")) == 2


def test_a_document_is_bounded_in_size_depth_and_number() -> None:
    assert faults("a: " + "x" * DOCUMENT_BYTES_MAX) == [f"f.yaml:1: must be at most {DOCUMENT_BYTES_MAX} bytes"]
    assert faults("a: " + "x" * (SCALAR_LENGTH_MAX + 1)) == [
        f"f.yaml:1: a: must be at most {SCALAR_LENGTH_MAX} characters"
    ]
    assert faults("[" * 500_000) == [f"f.yaml:1: must not nest deeper than {DEPTH_MAX} levels"]
    assert faults("a: [" + "1," * NODES_MAX + "]") == [f"f.yaml:1: must have at most {NODES_MAX} keys and values"]


def test_a_bomb_of_aliases_costs_nothing() -> None:
    levels = "".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]\n" for n in range(1, 40))
    started = time.perf_counter()
    document = read("l0: &l0 boom\n" + levels)
    assert time.perf_counter() - started < 2
    assert len(document.faults) == 39 * 9


def test_control_characters_of_a_key_do_not_reach_the_terminal() -> None:
    assert faults('"a\\e[31m": ${GONE}') == ["f.yaml:1: a\\x1b[31m: environment variable GONE is not set"]


@given(text=st.text(st.sampled_from("ab:-[]{},#&*!|>'\"%@`$ \n\t0123~?"), max_size=60))
def test_whatever_the_text_nothing_is_raised(text: str) -> None:
    document = read(text)
    assert document.value is None or isinstance(document.value, dict | list | str | int)
    assert all(fault.line and 1 <= fault.line <= text.count("\n") + 1 for fault in document.faults)


def test_the_same_holds_for_any_prefix_of_a_real_file() -> None:
    text = (Path(__file__).parents[3] / "config/examples/sidecar.yaml").read_text()
    outcomes = {bool(read(text[:end]).faults) for end in range(0, len(text), 37)}
    assert outcomes == {True, False}
