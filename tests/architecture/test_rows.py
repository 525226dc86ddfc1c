"""Every rule of what a Kafka proxy on the wire must do has a test that carries its number: ``@pytest.mark.row("3.4")``.

The list is the project's own sum of what broke in other proxies. A rule without a test is a wish, and a number that is
not on the list a slip.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

TESTS: Final = Path(__file__).parents[1]

ROWS: Final = {
    "1": "every answer that names brokers names the sidecar's ports",
    "2.1": "one port means one node, one more is for any",
    "2.2": "a node's port follows from its id, lasts, and may lack",
    "2.3": "ports are bound before anybody is told that it is ready",
    "2.4": "a node that moves keeps its port, one that leaves takes its clients along",
    "2.5": "where it listens is not what it tells",
    "3.1": "answers leave in the order of the requests",
    "3.2": "correlation ids may repeat",
    "3.3": "acks = 0 has no answer",
    "3.4": "requests may come before the broker's connection is open",
    "3.5": "what a client sent before it left still counts",
    "3.6": "much in flight pauses reading, and closes nothing",
    "3.7": "what waits for a held read, and how much of it",
    "3.8": "a broken connection to another broker ends no client",
    "3.9": "a throttled channel is left alone",
    "4.1": "one coherent set of versions",
    "4.2": "the lowest versions stay",
    "4.3": "ApiVersions goes down step by step",
    "4.4": "the client's own ApiVersions reaches its broker",
    "4.5": "unknown APIs pass",
    "4.6": "own questions are negotiated and create nothing",
    "4.7": "unknown tagged fields survive",
    "5.1": "TLS on both sides",
    "5.2": "logins pass, raw ones too",
    "5.3": "logins on a live connection",
    "5.4": "the sidecar's own identity",
    "5.5": "what cannot be done is refused at the start",
    "5.6": "strangers are recognised and explained",
    "5.7": "bad frames are closed, and never allocated",
    "5.8": "secrets are shown nowhere",
    "5.9": "the admin listener is guarded",
    "6.1": "the drain",
    "6.2": "the reload",
    "6.3": "idle connections are replaced unnoticed",
    "6.4": "no loops of error and reconnect",
    "6.5": "every connection has a way out",
    "6.6": "what is open now, and health",
}


def marked_rows() -> Iterator[tuple[str, Path]]:
    """The number of every `pytest.mark.row` in the tests, and where it stands."""
    for path in TESTS.rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call) or ast.unparse(node.func) != "pytest.mark.row":
                continue
            (number,) = node.args
            assert isinstance(number, ast.Constant), f"{path}:{node.lineno}: the number must be written out"
            yield str(number.value), path


def test_every_row_has_a_test() -> None:
    found = dict(marked_rows())
    assert {number: title for number, title in ROWS.items() if number not in found} == {}


def test_no_test_carries_a_number_that_is_not_on_the_list() -> None:
    assert {number: path.name for number, path in marked_rows() if number not in ROWS} == {}
