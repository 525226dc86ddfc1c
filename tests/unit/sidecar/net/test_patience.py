"""Closes wait longer the more often a broker has failed, and the log does not repeat itself."""

import asyncio
import socket

import pytest

from sidecar.net.patience import BACKOFF_S_MAX, BACKOFF_S_MIN, REMEMBERED_MAX, REPEAT_S, Backoff, Repeats, keep_alive


@pytest.mark.row("6.4")
def test_a_close_waits_twice_as_long_each_time_up_to_a_bound() -> None:
    backoff = Backoff()
    waits = [backoff.failed(1) for _ in range(40)]
    assert waits[:5] == [BACKOFF_S_MIN * factor for factor in (1, 2, 4, 8, 16)]
    assert waits[5:] == [BACKOFF_S_MAX] * 35
    assert backoff.failed(2) == BACKOFF_S_MIN
    backoff.succeeded(1)
    assert backoff.failed(1) == BACKOFF_S_MIN
    backoff.succeeded("nobody")


def test_a_line_is_news_once_a_minute() -> None:
    repeats = Repeats()
    assert repeats.is_news("a", 100.0)
    assert not repeats.is_news("a", 100.0 + REPEAT_S - 1)
    assert repeats.is_news("b", 101.0)
    assert repeats.is_news("a", 100.0 + REPEAT_S)
    assert not repeats.is_news("a", 101.0 + REPEAT_S)


def test_what_is_remembered_is_bounded() -> None:
    backoff, repeats = Backoff(), Repeats()
    for key in range(REMEMBERED_MAX + 1):
        backoff.failed(key)
        assert repeats.is_news(key, 1.0)
    assert backoff.failed(0) == BACKOFF_S_MIN
    assert backoff.failed(REMEMBERED_MAX) == 2 * BACKOFF_S_MIN
    assert repeats.is_news(0, 1.0)
    assert not repeats.is_news(REMEMBERED_MAX, 1.0)


@pytest.mark.row("6.5")
async def test_the_kernel_asks_a_silent_peer_whether_it_is_there() -> None:
    server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
    async with server:
        _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        keep_alive(writer.transport)
        found = writer.get_extra_info("socket")
        assert found.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert found.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 60
        writer.close()
        await writer.wait_closed()
