"""The command `inspect`: what it prints, and with which code it ends."""

from pathlib import Path

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from click.testing import CliRunner, Result

import tidegate.cli.inspect as command
from codec.log_records.settings import CONFIG
from codec.metadata_records import encode_metadata_record
from tidegate.cli.group import tidegate

GOOD = "request 0000000f0012000000000007000568656c6c6f"


def run(*args: str, given: bytes | str = b"") -> Result:
    return CliRunner().invoke(tidegate, ["inspect", *args], input=given)


def test_a_frame_from_standard_input() -> None:
    result = run(given=GOOD)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.splitlines()[0] == "line 1: request ApiVersions v0"
    assert '      12  000568656c6c6f        client_id: "hello"' in result.stdout


def test_wrong_bytes_end_with_1_and_are_named() -> None:
    result = run(given=f"{GOOD}00\n{GOOD}")
    assert result.exit_code == 1
    assert "WRONG frame: 1 bytes left over" in result.stdout
    assert "line 2: request ApiVersions v0" in result.stdout


def test_a_line_that_is_none_ends_with_2() -> None:
    result = run(given="hello")
    assert result.exit_code == 2
    assert result.stderr.startswith("standard input: line 1: a line is `request HEX`")


def test_files_that_cannot_be_read_end_with_2(tmp_path: Path) -> None:
    missing = run(str(tmp_path / "nothing"))
    assert (missing.exit_code, missing.stderr) == (2, f"{tmp_path}/nothing: No such file or directory\n")
    assert run(str(tmp_path)).exit_code == 2
    (tmp_path / "empty").touch()
    assert "no bytes; a text with frames" in run(str(tmp_path / "empty")).stderr


def test_standard_input_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "STANDARD_INPUT_BYTES_MAX", 10)
    result = run(given=GOOD)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "give it as FILE" in result.stderr


def test_a_segment_in_the_folder_of_the_metadata_log_is_taken_for_one(tmp_path: Path) -> None:
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=1 << 20,
    )
    value = encode_metadata_record(CONFIG, 0, {"name": "retention.ms", "value": "5"})
    builder.append(0, timestamp=1, key=None, value=value, headers=[])
    segment = tmp_path / "00000000000000000000.log"
    segment.write_bytes(builder.build())
    assert "ConfigRecord" not in run(str(segment)).stdout
    assert "type: 4 (ConfigRecord)" in run("--metadata", str(segment)).stdout
    folder = tmp_path / "__cluster_metadata-0"
    folder.mkdir()
    moved = segment.rename(folder / segment.name)
    assert "type: 4 (ConfigRecord)" in run(str(moved)).stdout


def test_help_has_an_example() -> None:
    assert "tidegate inspect --port 9092 capture.pcap" in run("--help").stdout
