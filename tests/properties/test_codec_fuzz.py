"""Damaged input gives a `CodecError` with a place, and nothing else: 100 000 inputs, ten million at night.

Whatever was interesting is kept in `codec_corpus.tsv` with the exact words of the error.
"""

import os
from pathlib import Path
from typing import Final

import pytest

from codec.errors import CodecError
from tests.support.fuzz import Fuzz, targets_by_name

NIGHTLY: Final = bool(os.environ.get("TIDEGATE_NIGHTLY"))
INPUTS: Final = 10_000_000 if NIGHTLY else 100_000
SEED: Final = 20261130
CORPUS: Final = Path(__file__).with_name("codec_corpus.tsv")


@pytest.mark.timeout(3600 if NIGHTLY else 300)
def test_damaged_input_gives_an_error_with_a_place_and_nothing_else() -> None:
    for target, data, fault in Fuzz(SEED).run(INPUTS):
        pytest.fail(f"{target.name}: {data.hex()}: {fault!r}")


def test_what_was_interesting_once_still_reads_the_same() -> None:
    rows = [line.split("\t") for line in CORPUS.read_text().splitlines() if not line.startswith("#")]
    assert len(rows) > 200
    targets = targets_by_name()
    said = []
    for name, data, _ in rows:
        try:
            targets[name].read(bytes.fromhex(data))
            said.append([name, data, "read"])
        except CodecError as error:
            said.append([name, data, str(error)])
    assert said == rows
