"""`tidegate inspect [FILE]`: frames, a capture or a log segment as an annotated tree."""

from __future__ import annotations

import mmap
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final, cast

import click

from codec.inspect import Fault, UnreadableInput, sections
from codec.inspect.render import line
from tidegate.cli.exit_codes import NO, USAGE

STANDARD_INPUT_BYTES_MAX: Final = 256 << 20
METADATA_FOLDER: Final = "__cluster_metadata-0"


@click.command()
@click.argument("file", required=False)
@click.option(
    "--port",
    "ports",
    type=click.IntRange(1, 65535),
    multiple=True,
    metavar="PORT",
    help="In a capture, look only at connections with this port; may be repeated.",
)
@click.option(
    "--metadata",
    is_flag=True,
    help=f"FILE is of the metadata log; files in a folder {METADATA_FOLDER} are without saying so.",
)
@click.pass_context
def inspect(ctx: click.Context, file: str | None, ports: tuple[int, ...], metadata: bool) -> None:
    """Show frames, captures and log segments as trees.

    FILE, or standard input without one, is text with one frame a line (request HEX, or response KEY
    VERSION HEX, the four bytes of size included), a pcap with TCP traffic, or a segment of a log.
    Each line shows the offset, the bytes, the field and its value. Passwords, tokens and other
    credentials are not shown; keys and values of records are.

    The exit code is 0 when all bytes are as they should be and 1 when some are not: these are shown
    up to the fault, which a line with WRONG names. It is 2 when the input is none of the three.

    \b
    Example:
      echo request 000000130012000000000007000568656c6c6f | tidegate inspect
      tidegate inspect --port 9092 capture.pcap
    """
    wrong = False
    out = sys.stdout
    try:
        with _input(file) as buffer:
            is_metadata = metadata or (file is not None and Path(file).absolute().parent.name == METADATA_FOLDER)
            for section in sections(buffer, ports=frozenset(ports), is_metadata=is_metadata):
                out.write(f"{section.title}\n")
                for item in section.items:
                    wrong = wrong or isinstance(item, Fault)
                    out.write(f"{line(item, section)}\n")
                out.write("\n")
    except UnreadableInput as error:
        click.echo(f"{file or 'standard input'}: {error}", err=True)
        ctx.exit(USAGE)
    if wrong:
        ctx.exit(NO)


@contextmanager
def _input(file: str | None) -> Iterator[bytes]:
    """The bytes to look at; a regular file is mapped, anything else read up to a bound."""
    if file is None:
        yield _bounded(sys.stdin.buffer)
        return
    try:
        with open(file, "rb") as stream:
            if Path(file).is_file() and Path(file).stat().st_size:
                with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
                    yield cast(bytes, mapped)
            else:
                yield _bounded(stream)
    except OSError as error:
        raise UnreadableInput(error.strerror or str(error)) from None


def _bounded(stream: BinaryIO) -> bytes:
    data = stream.read(STANDARD_INPUT_BYTES_MAX + 1)
    if len(data) > STANDARD_INPUT_BYTES_MAX:
        raise UnreadableInput(f"more than {STANDARD_INPUT_BYTES_MAX >> 20} MB; give it as FILE")
    return data
