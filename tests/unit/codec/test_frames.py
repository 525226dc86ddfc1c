"""Bytes to frames at every split, and who is at the other end when it is not Kafka."""

import struct

import pytest

from codec.errors import CodecError
from codec.frames import FrameReader, explain_prefix, frame, frame_buffer

PAYLOADS = [b"first", b"", b"x" * 300, b"last"]
STREAM = b"".join(map(frame, PAYLOADS))


def read_all(reader: FrameReader, chunks: list[bytes]) -> list[bytes]:
    return [payload for chunk in chunks for payload in reader.feed(chunk)]


def test_frame_puts_the_size_in_front() -> None:
    assert frame(b"abc").hex() == "00000003616263"
    assert frame(b"").hex() == "00000000"


def test_a_frame_buffer_is_the_same_frame_and_can_be_changed() -> None:
    buffer = frame_buffer(b"abc")
    assert buffer == frame(b"abc")
    buffer[4:5] = b"A"
    assert buffer == frame(b"Abc")


@pytest.mark.parametrize("at", range(len(STREAM) + 1))
def test_every_split_in_two(at: int) -> None:
    assert read_all(FrameReader(300), [STREAM[:at], STREAM[at:]]) == PAYLOADS


@pytest.mark.parametrize("step", [1, 2, 3, 5, 7, 64])
def test_small_chunks(step: int) -> None:
    chunks = [STREAM[at : at + step] for at in range(0, len(STREAM), step)]
    reader = FrameReader(300)
    assert read_all(reader, chunks) == PAYLOADS
    assert reader.buffered_bytes == 0


def test_what_waits_is_counted() -> None:
    reader = FrameReader(300)
    assert read_all(reader, [STREAM[:7]]) == []
    assert (reader.buffered_bytes, reader.first_bytes) == (7, STREAM[:7])


def test_bytes_are_kept_when_nobody_iterates() -> None:
    reader = FrameReader(300)
    reader.feed(STREAM[:20])
    assert list(reader.feed(STREAM[20:])) == PAYLOADS


def test_iterating_may_stop_in_between() -> None:
    reader = FrameReader(300)
    assert next(reader.feed(STREAM)) == PAYLOADS[0]
    assert list(reader.feed(b"")) == PAYLOADS[1:]


@pytest.mark.parametrize("size", [-1, -(2**31), 301, 2**31 - 1])
def test_a_size_that_is_negative_or_above_the_limit_is_refused(size: int) -> None:
    reader = FrameReader(300)
    with pytest.raises(CodecError, match=f"{size} bytes; the limit is 300") as caught:
        list(reader.feed(struct.pack(">i", size)))
    assert caught.value.field == "frame.size"


def test_frames_before_a_bad_size_are_delivered_and_the_error_stays() -> None:
    reader = FrameReader(300)
    payloads: list[bytes] = []
    with pytest.raises(CodecError, match="limit"):
        payloads.extend(reader.feed(STREAM + b"GET / HTTP/1.1\r\n"))
    assert (payloads, explain_prefix(reader.first_bytes)) == (PAYLOADS, "http")
    with pytest.raises(CodecError, match="limit"):
        list(reader.feed(STREAM))
    assert reader.first_bytes == b"GET / HTTP/1.1\r\n"
    assert reader.buffered_bytes == len(b"GET / HTTP/1.1\r\n")


def test_the_limit_itself_is_allowed() -> None:
    assert read_all(FrameReader(5), [frame(b"12345")]) == [b"12345"]


@pytest.mark.parametrize(
    ("first_bytes", "cause"),
    [
        ("16030100", "tls_hello"),
        ("160301", "tls_hello"),
        ("16030302", "tls_hello"),
        ("15030300", "tls_alert"),
        ("15030100020228", "tls_alert"),
        ("16020100", None),
        ("16030900", None),
        ("1603", None),
        ("00000020", None),
        ("", None),
    ],
)
def test_tls_is_recognised(first_bytes: str, cause: str | None) -> None:
    assert explain_prefix(bytes.fromhex(first_bytes)) == cause


@pytest.mark.parametrize(
    "first_bytes",
    [
        b"GET / HTTP/1.1",
        b"GET ",
        b"POST",
        b"PUT /x",
        b"HEAD",
        b"DELETE /",
        b"OPTI",
        b"HTTP/1.0 400",
        b"HTTP",
        b"PRI * HTTP/2.0",
    ],
)
def test_http_is_recognised(first_bytes: bytes) -> None:
    assert explain_prefix(first_bytes) == "http"


@pytest.mark.parametrize("first_bytes", [b"GET", b"GETX", b"get ", b"HTTP/2", b"POSTER"])
def test_what_only_looks_like_http_is_not(first_bytes: bytes) -> None:
    assert explain_prefix(first_bytes) is None


def test_a_limit_may_change_between_two_frames() -> None:
    reader = FrameReader(5)
    payloads = reader.feed(frame(b"small") + frame(b"larger"))
    assert next(payloads) == b"small"
    reader.accept_up_to(6)
    assert list(payloads) == [b"larger"]
    with pytest.raises(CodecError, match="7 bytes; the limit is 6"):
        list(reader.feed(frame(b"largest")))
