"""The health check of the image, as Docker runs it."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "deploy" / "healthcheck.py"
HOST = "127.0.0.1"


async def checked(answer: bytes) -> tuple[int, str]:
    """Exit code and error output against a server that answers so."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert (await reader.readuntil(b"\r\n")).startswith(b"GET /readyz ")
        writer.write(answer)
        await writer.drain()
        writer.close()

    listening = await asyncio.start_server(serve, HOST, 0)
    async with listening:
        return await run(listening.sockets[0].getsockname()[1])


async def run(port: int) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        "-S",
        SCRIPT,
        env={**os.environ, "TIDEGATE_HEALTH_URL": f"http://{HOST}:{port}/readyz"},
        stderr=asyncio.subprocess.PIPE,
    )
    _, errors = await process.communicate()
    assert process.returncode is not None
    return process.returncode, errors.decode()


async def test_200_is_healthy() -> None:
    assert await checked(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}") == (0, "")


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (b'HTTP/1.1 503 Unavailable\r\nContent-Length: 16\r\n\r\n{"ready": false}', '503 {"ready": false}'),
        (b"not HTTP\r\n", "not HTTP"),
        (b"", "closed connection without response"),
    ],
)
async def test_anything_else_is_not_and_says_why(answer: bytes, text: str) -> None:
    code, errors = await checked(answer)
    assert code == 1
    assert text in errors


async def test_nobody_there_is_not() -> None:
    listening = await asyncio.start_server(lambda _reader, _writer: None, HOST, 0)
    port = listening.sockets[0].getsockname()[1]
    listening.close()
    await listening.wait_closed()
    code, errors = await run(port)
    assert code == 1
    assert "refused" in errors
