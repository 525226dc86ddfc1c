"""The structural walk over an answer that comes in chunks: the bytes go on as they come, and a few are kept at most.

A Fetch answer of many megabytes need not be collected to learn whether a partition has moved. `ChunkedWalk` runs the
programs of `codec.skipping` over chunks of any size. It ends at the tail, the part that names the new leaders'
addresses; the caller collects the rest of the payload from there, which is small, and hands it back.

    feed(chunk) -> how many of its bytes stand in front of the tail: they can be forwarded as they are
    the others are collected; finish(tail) -> Walk; replace_node_endpoints(tail, walk, ...) -> the new tail

Knows no socket. It finds the same error codes and the same tail as `walk.node_endpoints`, wherever the chunks end.
"""

import struct
from collections.abc import Iterator
from typing import Final, final

from codec.errors import CodecError, Truncated
from codec.primitives import read_unsigned_varint
from codec.registry import response_header_version
from codec.skipping import Kind, Program, Step
from codec.walk import Walk, plan_of, walk_tail

_BYTES: Final = frozenset({Kind.COMPACT_BYTES, Kind.SHORT_BYTES, Kind.LONG_BYTES})
_WIDTH: Final = {Kind.SHORT_BYTES: 2, Kind.LONG_BYTES: 4, Kind.ARRAY: 4, Kind.NULLABLE_STRUCT: 1}
"""Bytes of the lengths that are no varints."""

_HEADERS: Final = (Program((Step(4, -1, Kind.NOTHING),), None), Program((Step(4, -1, Kind.TAGS),), None))
"""What the versions of response headers are made of: the correlation id, and from v1 on tagged fields."""

_int16 = struct.Struct(">h").unpack_from
_int32 = struct.Struct(">i").unpack_from


@final
class ChunkedWalk:
    """A walk over the payload of one answer, its header included.

    The driver's duties: feed every chunk of the payload in order; forward as many bytes of it as `feed` says; collect
    the others, with a bound; after the last chunk call `finish` with what was collected.
    """

    __slots__ = ("_api", "_at", "_error_codes", "_fed", "_name", "_reading", "_tail_start", "_window")

    def __init__(self, api_key: int, api_version: int) -> None:
        """Start at the first byte of an answer to a request of this API and version.

        Raises:
            CodecError: There is no walk for this API, or the version is unknown.
        """
        plan = plan_of(api_key, api_version)
        self._api = (api_key, api_version)
        self._name = plan.name
        self._error_codes: set[int] = set()
        self._window = b""
        self._at = 0
        self._fed = 0
        self._tail_start = -1
        self._reading = self._read((_HEADERS[response_header_version(api_key, api_version)], plan.before))

    @property
    def error_codes(self) -> frozenset[int]:
        """The error codes other than 0 of the partitions met so far."""
        return frozenset(self._error_codes)

    @property
    def tail_start(self) -> int:
        """Offset of the tail in the payload, -1 while it is not known; the end of the payload where there is none."""
        return self._tail_start

    @property
    def held_bytes(self) -> int:
        """How many bytes are kept because the field that they begin is not whole: one run of fixed size at most."""
        return len(self._window)

    def feed(self, chunk: bytes) -> int:
        """Take the next bytes of the payload in; returns how many of them stand in front of the tail.

        Raises:
            CodecError: These are no bytes of such an answer; `offset` counts from the start of the payload. The walk is
                of no use afterwards.
        """
        chunk_start = self._fed
        self._fed += len(chunk)
        if self._tail_start < 0:
            self._window = self._window + chunk if self._window else chunk
            window_start = self._fed - len(self._window)
            try:
                next(self._reading)
            except StopIteration:
                self._tail_start = window_start + self._at
            except CodecError as error:
                raise CodecError(window_start + error.offset, error.field, error.reason) from None
            passed = min(self._at, len(self._window))
            self._window = b"" if self._tail_start >= 0 else self._window[passed:]
            self._at -= passed
        if self._tail_start < 0:
            return len(chunk)
        return min(len(chunk), max(0, self._tail_start - chunk_start))

    def finish(self, tail: bytes) -> Walk:
        """The walk over the whole answer; its `tail_start` counts from the start of `tail`.

        Raises:
            CodecError: The answer ended before its tail, or the tail is malformed.
        """
        if not 0 <= self._tail_start <= self._fed:
            raise Truncated(self._fed, self._name, "the bytes end within it")
        return walk_tail(tail, *self._api, self.error_codes)

    def _read(self, programs: tuple[Program, ...]) -> Iterator[None]:
        for program in programs:
            yield from self._run(1, program)

    def _run(self, count: int, program: Program) -> Iterator[None]:
        """Pass `count` structs; yields whenever more bytes are wanted.

        `_at` counts from the start of the window and may point beyond it: what lies between is passed when it comes.
        """
        while count > 0:
            if (leap := program.leap) is not None:
                self._at, count = leap.over(self._window, self._at, count, leap)
                if not count:
                    break
            count -= 1
            for passed, error_at, kind, inner in program.steps:
                if error_at >= 0:
                    while len(self._window) < self._at + error_at + 2:
                        yield
                    code = _int16(self._window, self._at + error_at)[0]
                    if code:
                        self._error_codes.add(code)
                self._at += passed
                if kind is Kind.NOTHING:
                    continue
                while (length := self._length(kind)) is None:
                    yield
                if kind in _BYTES:
                    self._at += length
                elif kind is Kind.TAGS:
                    yield from self._tags(length)
                elif inner is not None and length > 0:
                    yield from self._elements(length, inner)

    def _elements(self, count: int, program: Program) -> Iterator[None]:
        step = program.steps[0]
        if step.kind is Kind.NOTHING and step.error_at < 0 and len(program.steps) == 1:
            self._at += count * step.passed
        else:
            yield from self._run(count, program)

    def _tags(self, count: int) -> Iterator[None]:
        for _ in range(count):
            while self._length(Kind.TAGS) is None:
                yield
            while (size := self._length(Kind.TAGS)) is None:
                yield
            self._at += size

    def _length(self, kind: Kind) -> int | None:
        """Read a length or count, 0 for null; None while it is not all there. A struct counts as an array of one."""
        window, at = self._window, self._at
        width = _WIDTH.get(kind)
        if width is not None:
            if len(window) < at + width:
                return None
            self._at += width
            if kind is Kind.NULLABLE_STRUCT:
                return int(window[at] < 0x80)
            unpack = _int16 if width == 2 else _int32
            return max(0, int(unpack(window, at)[0]))
        try:
            length, self._at = read_unsigned_varint(window, at, self._name)
        except Truncated:
            return None
        return length if kind is Kind.TAGS else max(0, length - 1)
