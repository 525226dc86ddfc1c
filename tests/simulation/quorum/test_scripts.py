"""The stories in `scripts` come true."""

from pathlib import Path
from typing import Final

import pytest

from tests.simulation.quorum.script import Script

SCRIPTS: Final = sorted((Path(__file__).parent / "scripts").glob("*.txt"))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_comes_true(path: Path) -> None:
    Script().run(path.read_text())


@pytest.mark.parametrize(
    "text",
    [
        "3 voters\n1 leads epoch 7",
        "3 voters\n1 flies",
        "3 voters\nnodes stand in the order 1 2 3\n1 leads epoch 1\nwrite a at 1\nread at 2: b",
        "3 voters\nnodes stand in the order 1 2 3\n1 leads epoch 1\n1 has not done: asks 2: Vote in epoch 1",
    ],
)
def test_a_script_that_is_wrong_fails_with_its_line(text: str) -> None:
    with pytest.raises(AssertionError) as caught:
        Script().run(text)
    assert f"line {len(text.splitlines())}: " in caught.value.__notes__[0]
