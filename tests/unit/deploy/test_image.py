"""The Dockerfile: what it copies is there and not ignored, it installs by hash, and it runs as nobody's root."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
DOCKERFILE = (ROOT / "deploy" / "Dockerfile").read_text().replace("\\\n", " ")
IGNORED = (ROOT / ".dockerignore").read_text().splitlines()


def instructions(name: str, text: str = DOCKERFILE) -> list[str]:
    return re.findall(rf"^{name} (.*)$", text, flags=re.MULTILINE)


def copied() -> list[str]:
    """Sources of COPY within the repository."""
    sources = []
    for instruction in instructions("COPY"):
        if not instruction.startswith("--from="):
            *found, _target = instruction.split()
            sources += found
    return sources


@pytest.mark.parametrize("source", copied())
def test_what_is_copied_is_there_and_let_in(source: str) -> None:
    assert (ROOT / source).exists()
    assert f"!{source}" in IGNORED


def test_everything_else_stays_out() -> None:
    rules = [rule for rule in IGNORED if rule and not rule.startswith("#")]
    assert rules[0] == "*"
    assert {rule[1:] for rule in rules if rule.startswith("!")} == set(copied())


def test_every_package_is_copied() -> None:
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"tests"}
    assert packages <= set(copied())


def test_dependencies_come_from_the_lock_by_hash() -> None:
    installs = [line for line in instructions("RUN") if "pip install" in line]
    assert len(installs) == 2
    assert "--require-hashes -r requirements/runtime.lock" in installs[0]
    assert "--no-deps" in installs[1]


def test_the_image_runs_without_root_and_with_the_working_directory_off_the_import_path() -> None:
    final = DOCKERFILE.rpartition("\nFROM ")[2]
    (user,) = instructions("USER", final)
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user)
    (entry,) = instructions("ENTRYPOINT", final)
    assert entry == '["/opt/tidegate/bin/python", "-P", "-m", "tidegate"]'
