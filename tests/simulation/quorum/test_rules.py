"""`docs/quorum.md` lists every rule of the quorum's docstrings, and says truly what breaks without it."""

import importlib
import pkgutil
import re
from pathlib import Path
from typing import Final

import backend.raft
from tests.simulation.quorum.bugs import BUGS

ROOT: Final = Path(__file__).parents[3]
PAGE: Final = (ROOT / "docs" / "quorum.md").read_text()
ROW: Final = re.compile(r"^\| `([^`]+)` \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
RULE: Final = re.compile(r"^    ([A-Za-z_]+(?:\.[a-z_]+)?) {2,}\S", re.MULTILINE)
NO_RULES: Final = frozenset({"states"})
"""Its table is that of the transitions, which a unit test compares with the code."""

OF_OTHERS: Final = frozenset({"effects duty 1", "effects duty 3", "storage read", "storage sync"})
"""What the driver owes, and the storage."""


def rules_of_docstrings() -> list[str]:
    """Module and name of every rule."""
    rules = []
    for module in pkgutil.iter_modules(backend.raft.__path__):
        if module.name not in NO_RULES:
            text = importlib.import_module(f"backend.raft.{module.name}").__doc__ or ""
            rules += [f"{module.name}.{name}" for name in RULE.findall(text)]
    return rules


def test_every_rule_has_its_row_and_every_row_its_rule() -> None:
    assert {rule for rule, _, _ in ROW.findall(PAGE)} == {*rules_of_docstrings(), *OF_OTHERS}


def test_every_rule_is_the_name_of_something() -> None:
    for rule in rules_of_docstrings():
        module_name, _, name = rule.partition(".")
        source = (ROOT / "backend" / "raft" / f"{module_name}.py").read_text()
        assert re.search(rf"^ *def _?{name.split('.')[-1]}\(", source, re.MULTILINE), rule


def test_every_invariant_is_broken_by_some_bug() -> None:
    sources = "".join(path.read_text() for path in Path(__file__).parent.glob("*.py"))
    invariants = set(re.findall(r"(?:_fail|Violation)\(\s*\"(\w+)\"", sources))
    assert len(invariants) > 20
    assert invariants - {name for bug in BUGS for name in bug.caught_by} == set()


def test_what_the_table_says_of_the_bugs_is_true() -> None:
    told = {}
    for bug in BUGS:
        notices = []
        if bug.caught_by:
            names = " or ".join(f"`{name}`" for name in sorted(bug.caught_by))
            notices.append(f"{names}, {bug.seeds} seeds")
        if bug.script:
            notices.append(f"script `{bug.script}`")
        told[bug.rule, bug.title] = "; ".join(notices)
    rows = {(rule, title): notices for rule, title, notices in ROW.findall(PAGE) if not notices.startswith("unit ")}
    assert rows == told


def test_the_unit_tests_of_the_table_are_there() -> None:
    tests = "".join(path.read_text() for path in (ROOT / "tests/unit/backend/raft").glob("test_*.py"))
    named = [notices.removeprefix("unit ").strip("`") for _, _, notices in ROW.findall(PAGE) if "unit `" in notices]
    assert named
    assert [name for name in named if f"def {name}(" not in tests] == []
