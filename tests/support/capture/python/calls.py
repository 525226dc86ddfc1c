"""How a client program in Python is led: before each call it prints `call NAME` and waits for a line."""

import sys


def client(name: str, version: str) -> tuple[str, str]:
    """Say who is calling; returns the address of the broker and the topic to use."""
    _say(f"client {name} {version}")
    return sys.argv[1], sys.argv[2]


def call(name: str) -> None:
    """Ask for permission to make the next call."""
    _say(f"call {name}")
    if not sys.stdin.readline():
        sys.exit(1)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
