"""How the command starts: from where it imports, and what it leaves alone until it is needed.

Each test runs a real process, because what is imported is a matter of processes.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "config" / "examples" / "sidecar.yaml"
SCRIPT = Path(sys.executable).with_name("tidegate")
OURS = ("codec", "config", "sidecar", "backend")
TRAP = "raise SystemExit('somebody else\\'s {name} was imported')\n"


def run(*command: str | Path, cwd: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run(
        command, cwd=cwd, env={**clean, **environment}, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.fixture
def trapped(tmp_path: Path) -> Path:
    """A working directory with a module, or a package, of each of our plain names."""
    for name in OURS:
        (tmp_path / f"{name}.py").write_text(TRAP.format(name=name))
    package = tmp_path / "config"
    package.mkdir()
    (package / "__init__.py").write_text(TRAP.format(name="config"))
    return tmp_path


STARTS: dict[str, tuple[list[str | Path], dict[str, str]]] = {
    "console script": ([SCRIPT], {}),
    "console script, working directory on PYTHONPATH": ([SCRIPT], {"PYTHONPATH": f".{os.pathsep}"}),
    "python -P -m": ([sys.executable, "-P", "-m", "tidegate"], {}),
    "python -m": ([sys.executable, "-m", "tidegate"], {}),
}


@pytest.mark.parametrize("start", STARTS)
def test_modules_of_the_working_directory_are_never_taken_for_ours(trapped: Path, start: str) -> None:
    command, environment = STARTS[start]
    result = run(*command, "check", EXAMPLE, cwd=trapped, **environment)
    assert (result.returncode, result.stdout, result.stderr) == (0, f"{EXAMPLE}: valid sidecar configuration\n", "")


def test_the_trap_works(trapped: Path) -> None:
    result = run(sys.executable, "-c", "import config.load", cwd=trapped)
    assert "somebody else's config was imported" in result.stderr


def test_a_checkout_imports_from_itself() -> None:
    result = run(
        sys.executable,
        "-S",
        "-c",
        "import tidegate.cli.import_path as p; p.leave_out_working_directory(); import config",
    )
    assert (result.returncode, result.stderr) == (0, "")


def test_a_working_directory_that_is_gone_does_no_harm(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    result = run("sh", "-c", f'rmdir "{gone}" && exec "{SCRIPT}" check "{EXAMPLE}"', cwd=gone)
    assert result.returncode == 0, result.stderr


def imported(statement: str) -> set[str]:
    result = run(sys.executable, "-c", f"{statement}\nimport sys; print(*sys.modules)")
    assert result.returncode == 0, result.stderr
    return set(result.stdout.splitlines()[-1].split())


def test_the_library_brings_nothing_of_the_rest() -> None:
    loaded = imported("import tidegate, tidegate.cli")
    assert not loaded & {*OURS, "pydantic", "yaml", "click", "aiohttp", "uvloop", "construct"}


def test_help_starts_without_the_rest() -> None:
    loaded = imported("import tidegate.cli.group as g\ng.tidegate(['--help'], standalone_mode=False)")
    assert "click" in loaded
    assert not loaded & {*OURS, "pydantic", "yaml", "aiohttp", "uvloop", "construct", "prometheus_client", "asyncio"}


def test_the_version_is_that_of_the_distribution() -> None:
    result = run(SCRIPT, "--version")
    assert (result.returncode, result.stdout) == (0, "tidegate 0.1.0\n")
