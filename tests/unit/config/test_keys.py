"""The keys of the public interface, in the models, in the example, in the documentation and in the schema.

`INTERFACE` is the list of the interface, written down by hand: a key that is renamed or lost fails here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, get_args

import pytest

from config.document import Plain, children, read_document
from config.faults import KeyPath
from config.judge import judge
from config.keys import ANY, catalogue, key_at, matches, spelled
from config.load import load_sidecar, parse_sidecar
from config.schema import Schema, sidecar_schema
from config.sidecar import GatedApi, SidecarConfig
from config.unsupported import UNSUPPORTED, is_accepted
from tests.unit.config.documented_keys import PAGE, documented_table, table

EXAMPLE: Final = Path(__file__).parents[3] / "config" / "examples" / "sidecar.yaml"

_SSL: Final = {
    "ca_file": None,
    "cert_file": None,
    "key_file": None,
    "key_password_file": None,
    "verify_hostname": True,
}
INTERFACE: Final[dict[str, Plain]] = {
    "cluster.bootstrap_servers": ["127.0.0.1:9092"],
    "cluster.security.protocol": "PLAINTEXT",
    **{f"cluster.security.ssl.{key}": value for key, value in _SSL.items()},
    "cluster.security.sasl.mechanism": None,
    "cluster.security.sasl.username": None,
    "cluster.security.sasl.password_file": None,
    "cluster.security.sasl.token_file": None,
    "cluster.head_source": "describe_quorum",
    "cluster.controllers": [],
    "cluster.probe.idle_interval_ms": 1000,
    "cluster.probe.min_interval_ms": 2,
    "cluster.probe.timeout_ms": 1000,
    "listeners[*].name": "default",
    "listeners[*].bind": "127.0.0.1:19092",
    "listeners[*].advertised_host": "127.0.0.1",
    "listeners[*].node_ports": "19101-19199",
    "listeners[*].advertised_node_ports": None,
    "listeners[*].security.protocol": "PLAINTEXT",
    **{f"listeners[*].security.ssl.{key}": value for key, value in _SSL.items()},
    "listeners[*].security.client_auth": "none",
    "listeners[*].session": None,
    "listeners[*].identity": "client",
    "consistency.level": "session",
    "consistency.scope": "service",
    "consistency.wait_timeout_ms": 3000,
    "consistency.on_timeout": "error",
    "consistency.depth": "auto",
    "consistency.write_barrier": "committed",
    "consistency.barrier_grace_ms": 1000,
    "consistency.barrier_on_grace": "release",
    "consistency.effective_grace_ms": 2000,
    "consistency.serialize_writes": False,
    "consistency.gate_data_plane": False,
    "consistency.bounded.max_lag_records": 0,
    "consistency.bounded.max_lag_ms": 0,
    "consistency.expose_state": False,
    "limits.connections": 10_000,
    "limits.in_flight_per_connection": 1000,
    "limits.frame_bytes": 104_857_600,
    "limits.held_requests": 10_000,
    "limits.held_bytes": 67_108_864,
    "limits.overtaken_answer_bytes": 1_048_576,
    "limits.sessions": 10_000,
    "limits.session_idle_ms": 1_800_000,
    "limits.drain_timeout_ms": 30_000,
    "admin.bind": "127.0.0.1:9464",
    "admin.token_file": None,
    "logging.level": "info",
    "logging.format": "text",
    "state_file": None,
    "fleet.url": None,
}
PER_API: Final = {"consistency.apis[*].level": None, "consistency.apis[*].depth": None}
"""Keys of an override: there only for the APIs that a file names."""

KEYS = [key for key in catalogue(SidecarConfig).values() if not key.is_section]


def leaves(path: KeyPath, value: Plain) -> Iterator[tuple[str, Plain]]:
    """Dotted place, with `[*]` for list entries, and value of everything that is no section."""
    key = key_at(SidecarConfig, path)
    if key is not None and not key.is_section:
        yield str(key), value
    for at, entry in () if key is not None and not key.is_section else children(value, path):
        yield from leaves(at, entry)


def test_the_models_have_the_keys_and_defaults_of_the_interface() -> None:
    required = {"cluster.bootstrap_servers"}
    expected = {**INTERFACE, **PER_API}
    assert {str(key) for key in KEYS} == set(expected)
    assert {str(key): key.default for key in KEYS if not key.required} == {
        name: value for name, value in expected.items() if name not in required
    }
    assert {str(key) for key in KEYS if key.required} == required


def test_the_example_has_every_key_with_its_default() -> None:
    document = read_document(EXAMPLE.read_text(), "sidecar.yaml", {})
    assert document.faults == ()
    assert dict(leaves((), document.value)) == INTERFACE
    assert load_sidecar(EXAMPLE) == parse_sidecar('cluster: {bootstrap_servers: "127.0.0.1:9092"}', "f", {})


def test_every_key_of_the_example_has_a_comment_that_tells_what_is_not_there_yet() -> None:
    lines = EXAMPLE.read_text().splitlines()
    document = read_document("\n".join(lines), "sidecar.yaml", {})
    for path, number in document.lines.items():
        key = key_at(SidecarConfig, path)
        if key is None or key.is_section or isinstance(path[-1], int):
            continue
        _, mark, comment = lines[number - 1].partition(" # ")
        assert mark, f"{key} has no comment"
        accepted = UNSUPPORTED.get(key.pattern, ())
        assert comment.startswith("(later)") == (len(accepted) == 1), str(key)


def test_the_documentation_has_every_key() -> None:
    assert documented_table(PAGE.read_text()) == table(), "run: python -m tests.unit.config.documented_keys"


def test_every_key_is_described_in_one_sentence() -> None:
    for key in KEYS:
        assert re.fullmatch(r"[A-Z`][^|\n]{10,120}\.", key.description), str(key)


def test_the_gated_apis_are_documented() -> None:
    page = PAGE.read_text()
    assert [api for api in get_args(GatedApi) if f"`{api}`" not in page] == []
    assert len(get_args(GatedApi)) == 10


@pytest.mark.parametrize("pattern", UNSUPPORTED, ids=spelled)
def test_what_is_not_supported_is_a_key_and_its_default_is_accepted(pattern: tuple[str, ...]) -> None:
    key = catalogue(SidecarConfig)[pattern]
    assert is_accepted(key.default, UNSUPPORTED[pattern])
    words = [choice for choice in UNSUPPORTED[pattern] if choice is not None]
    assert not key.choices or set(words) <= set(key.choices)


def another_value(pattern: tuple[str, ...]) -> Plain:
    """A value that the model takes at `pattern` and this version does not."""
    key = catalogue(SidecarConfig)[pattern]
    candidates: list[Plain] = [*key.choices, True, False, ["h:1"], "h:1", 5]
    return next(
        value
        for value in candidates
        if not is_accepted(value, UNSUPPORTED[pattern])
        and (bool(key.choices) or type(value) is type(key.default) or (key.default is None and value == "h:1"))
    )


def nested(pattern: tuple[str, ...], value: Plain) -> Plain:
    """`value` at `pattern`, with everything else left out."""
    for part in reversed(pattern):
        value = [value] if part == ANY else {part: value}
    return value


@pytest.mark.parametrize("pattern", UNSUPPORTED, ids=spelled)
def test_what_is_not_supported_is_refused(pattern: tuple[str, ...]) -> None:
    if pattern[:3] == ("consistency", "apis", ANY):
        tree = nested(("consistency", "apis", "metadata", *pattern[3:]), another_value(pattern))
    else:
        tree = nested(pattern, another_value(pattern))
    _, broken = judge(SidecarConfig, tree)
    reasons = [reason for at, reason in broken if matches(pattern, at)]
    assert len(reasons) == 1
    assert reasons[0].startswith("not yet supported by this version; ")


def test_the_schema_has_the_same_keys_and_defaults() -> None:
    found = dict(schema_leaves((), sidecar_schema()))
    assert set(found) == {**INTERFACE, **PER_API}.keys()
    for key in KEYS:
        entry = found[str(key)]
        assert entry["description"] == key.description
        assert key.required or entry["default"] == key.default


def test_the_schema_is_as_narrow_as_this_version() -> None:
    found = dict(schema_leaves((), sidecar_schema()))
    variable = {"type": "string", "pattern": r"\$\{[A-Za-z_][A-Za-z0-9_]*\}"}

    def accepted(name: str) -> Any:
        return [part for part in found[name].get("anyOf", [found[name]]) if part != variable]

    sasl = {"enum": ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]}
    assert accepted("cluster.security.protocol")[0] == {"enum": ["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]}
    assert accepted("cluster.security.sasl.mechanism")[0] == sasl
    assert accepted("consistency.on_timeout") == [{"enum": ["error", "freshest", "stale", "close"]}]
    assert accepted("consistency.gate_data_plane")[0]["enum"] == [False, "false"]
    assert found["fleet.url"]["enum"] == [None]
    assert found["limits.sessions"]["type"] == ["integer", "string"]
    assert (found["limits.sessions"]["minimum"], found["limits.sessions"]["maximum"]) == (1, 10_000_000)
    schema = sidecar_schema()
    assert schema["required"] == ["cluster"]
    assert schema["properties"]["cluster"]["required"] == ["bootstrap_servers"]


def schema_leaves(at: tuple[str, ...], schema: Schema) -> Iterator[tuple[str, Schema]]:
    """Dotted place and schema of everything that is no section; each section must be closed."""
    if "properties" in schema:
        assert schema["additionalProperties"] is False
        for name, below in schema["properties"].items():
            free = at == ("consistency", "apis")
            yield from schema_leaves((*at, ANY if free else name), below)
    elif "properties" in schema.get("items", {}):
        yield from schema_leaves((*at, ANY), schema["items"])
    else:
        yield spelled(at), schema


ODD: Final[tuple[Plain, ...]] = (
    None,
    True,
    0,
    -1,
    10**18,
    "",
    "x",
    "h:1",
    "1-5",
    "null",
    [],
    ["x"],
    [None],
    {},
    {"x": 1},
)
REASON: Final = re.compile(
    r"(must |required|unknown key|not yet supported|has |is |port must )[^\n]+|required|unknown key"
)


def everywhere(path: KeyPath, value: Plain) -> Iterator[KeyPath]:
    for at, entry in children(value, path):
        yield at
        yield from everywhere(at, entry)


def replaced(tree: Plain, path: KeyPath, value: Plain) -> Plain:
    if not path:
        return value
    first, rest = path[0], path[1:]
    entries = {at[-1]: replaced(entry, rest, value) if at[-1] == first else entry for at, entry in children(tree, ())}
    return {str(key): entry for key, entry in entries.items()} if isinstance(tree, dict) else list(entries.values())


def test_any_value_anywhere_is_taken_or_refused_in_our_words() -> None:
    tree = read_document(EXAMPLE.read_text(), "sidecar.yaml", {}).value
    outcomes = {True: 0, False: 0}
    for path in everywhere((), tree):
        for value in ODD:
            config, broken = judge(SidecarConfig, replaced(tree, path, value))
            assert (config is None) == bool(broken)
            assert [reason for _, reason in broken if not REASON.fullmatch(reason)] == []
            outcomes[config is None] += 1
    assert min(outcomes.values()) > 0
