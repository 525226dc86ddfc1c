"""The keys of the backend's file, in the model, the example, the documentation and the schema. As `test_keys`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from config.backend import BackendConfig
from config.document import Plain, children, read_document
from config.faults import KeyPath
from config.judge import judge
from config.keys import ANY, catalogue, key_at, matches, spelled
from config.load import load_backend
from config.schema import Schema, backend_schema
from config.unsupported import BACKEND_UNSUPPORTED, is_accepted
from tests.unit.config.documented_keys import PAGE, documented_table, table

EXAMPLE: Final = Path(__file__).parents[3] / "config" / "examples" / "backend.yaml"
INTERFACE: Final[dict[str, Plain]] = {
    "cluster_id": None,
    "data_dir": None,
    "local": None,
    "nodes[*].id": None,
    "nodes[*].roles": None,
    "nodes[*].listen": None,
    "nodes[*].controller_listen": None,
    "nodes[*].advertised_host": None,
    "nodes[*].replay_delay_ms": 0,
    "nodes[*].publish_delay_ms": 0,
    "quorum.election_timeout_ms": 1000,
    "quorum.fetch_timeout_ms": 2000,
    "noop_interval_ms": 500,
    "state_wait_ms": 3000,
    "read_consistency": "local",
    "defaults.num_partitions": 1,
    "defaults.replication_factor": 1,
    "security.protocol": "PLAINTEXT",
    "security.ssl.ca_file": None,
    "security.ssl.cert_file": None,
    "security.ssl.key_file": None,
    "security.ssl.key_password_file": None,
    "security.ssl.verify_hostname": True,
    "security.client_auth": "none",
    "security.users_file": None,
    "security.session_lifetime_ms": 3600000,
    "security.delegation_token_secret_file": None,
    "security.authorizer": "none",
    "security.super_users": [],
    "security.allow_everyone_if_no_acl_found": False,
    "admin.bind": None,
    "admin.token_file": None,
    "logging.level": "info",
    "logging.format": "text",
}
REQUIRED: Final = {"cluster_id", "nodes[*].id", "nodes[*].roles"}
KEYS = [key for key in catalogue(BackendConfig).values() if not key.is_section]


def leaves(path: KeyPath, value: Plain) -> Iterator[tuple[str, Plain]]:
    """Dotted place, with `[*]` for list entries, and value of everything that is no section."""
    key = key_at(BackendConfig, path)
    if key is not None and not key.is_section:
        yield str(key), value
        return
    for at, entry in children(value, path):
        yield from leaves(at, entry)


def test_the_model_has_the_keys_and_defaults_of_the_interface() -> None:
    assert {str(key): key.default for key in KEYS} == INTERFACE
    assert {str(key) for key in KEYS if key.required} == REQUIRED


def test_the_example_has_every_key_and_defaults_but_for_its_nodes() -> None:
    document = read_document(EXAMPLE.read_text(), "backend.yaml", {})
    assert document.faults == ()
    found = dict(leaves((), document.value))
    assert set(found) == set(INTERFACE)
    differing = {name for name, value in found.items() if value != INTERFACE[name]}
    assert differing == REQUIRED | {"nodes[*].listen", "nodes[*].controller_listen"}
    assert [node.roles for node in load_backend(EXAMPLE).nodes] == [("broker",)] * 3 + [("controller",)] * 3


def test_every_key_of_the_example_has_a_comment_where_it_comes_first() -> None:
    lines = EXAMPLE.read_text().splitlines()
    seen = set()
    for path, number in read_document("\n".join(lines), "backend.yaml", {}).lines.items():
        key = key_at(BackendConfig, path)
        if key is None or key.is_section or isinstance(path[-1], int) or key.pattern in seen:
            continue
        seen.add(key.pattern)
        _, mark, comment = lines[number - 1].partition(" # ")
        assert mark, f"{key} has no comment"
        assert comment.startswith("(later)") == (len(BACKEND_UNSUPPORTED.get(key.pattern, ())) == 1), str(key)


def test_the_documentation_has_every_key() -> None:
    documented = documented_table(PAGE.read_text(), "backend keys")
    assert documented == table("backend keys"), "run: python -m tests.unit.config.documented_keys"


def test_every_key_is_described_in_one_sentence() -> None:
    for key in KEYS:
        assert re.fullmatch(r"[A-Z`][^|\n]{10,120}\.", key.description), str(key)


@pytest.mark.parametrize("pattern", BACKEND_UNSUPPORTED, ids=spelled)
def test_what_is_not_supported_is_refused_and_its_default_is_not(pattern: tuple[str, ...]) -> None:
    key = catalogue(BackendConfig)[pattern]
    assert is_accepted(key.default, BACKEND_UNSUPPORTED[pattern])
    candidates: list[Plain] = [*key.choices, True, False, "x", 5, 50, [1]]
    refused = []
    for value in candidates:
        tree: Plain = value
        for part in reversed(pattern):
            tree = {part: tree}
        _, broken = judge(BackendConfig, tree, BACKEND_UNSUPPORTED)
        refused += [reason for at, reason in broken if matches(pattern, at) and reason.startswith("not yet supported")]
    assert refused
    assert len(set(refused)) == 1


def test_the_schema_has_the_same_keys_defaults_and_required_ones() -> None:
    schema = backend_schema()
    found = dict(schema_leaves((), schema))
    assert set(found) == set(INTERFACE)
    for key in KEYS:
        assert found[str(key)]["description"] == key.description
        assert key.required or found[str(key)]["default"] == key.default
    assert schema["required"] == ["cluster_id", "nodes"]
    assert schema["properties"]["nodes"]["items"]["required"] == ["id", "roles"]

    roles = found["nodes[*].roles"]["anyOf"]
    assert {"enum": ["controller", "broker"]} in roles


def schema_leaves(at: tuple[str, ...], schema: Schema) -> Iterator[tuple[str, Schema]]:
    """Dotted place and schema of everything that is no section; each section must be closed."""
    if "properties" in schema:
        assert schema["additionalProperties"] is False
        for name, entry in schema["properties"].items():
            yield from schema_leaves((*at, name), entry)
    elif schema.get("type") == "array":
        yield from schema_leaves((*at, ANY), schema["items"])
    else:
        yield spelled(at), schema
