"""Drives the workload: one connection for writes and one to each node, all open before the first round.

Must not know what stands behind the addresses. A read that fails is counted, and its connection replaced; nothing is
asked twice.
"""

import asyncio
import contextlib
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kio.schema.errors import ErrorCode

from tests.support.address import Address
from tests.support.raw_client import PlainLogin, RawClientError, RawConnection
from tests.support.workload.exchange import Judgement, Read, Verdict, Write, failed
from tests.support.workload.kinds import KINDS, Kind
from tests.support.workload.tally import Result

CLIENT_ID = "workload"
SETTLE_TIMEOUT_S = 60.0
SETTLE_POLL_S = 0.02
READ_TIMEOUT_S = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """The addresses of a run, and who to be there."""

    nodes: Mapping[int, Address]
    writer: Address | None
    login: PlainLogin | None
    client_id: str

    def port(self, address: Address) -> "Port":
        """A port that is not open yet."""
        return Port(address=address, login=self.login, client_id=self.client_id)

    def offers(self, kind: type[Kind]) -> bool:
        """Can this kind be run here?"""
        return self.login is not None or not kind.needs_sasl


BeforeRead = Callable[[Kind], Awaitable[None]]


class WorkloadError(AssertionError):
    """The workload could not get to where its rounds begin."""


@dataclass(slots=True, kw_only=True)
class Port:
    """An address with a connection that is opened when there is none."""

    address: Address
    login: PlainLogin | None
    client_id: str
    connection: RawConnection | None = field(default=None, init=False)

    async def open(self) -> RawConnection:
        """The connection; raises as `RawConnection.open`."""
        if self.connection is None:
            self.connection = await RawConnection.open(self.address, login=self.login, client_id=self.client_id)
        return self.connection

    async def close(self) -> None:
        """Close; the next use opens a new connection."""
        if self.connection is not None:
            connection, self.connection = self.connection, None
            await connection.close()

    async def ask(self, exchange: Read[Any] | Write[Any]) -> Any:
        """The answer; after a failure the connection is closed. Raises as `RawConnection.ask`."""
        try:
            connection = await self.open()
            return await connection.ask(exchange.request, exchange.response_type, timeout_s=READ_TIMEOUT_S)
        except BaseException:
            await self.close()
            raise

    async def read(self, read: Read[Any]) -> Judgement:
        """Read and judge; a failure is a judgement too."""
        try:
            answer = await self.ask(read)
        except (OSError, RawClientError) as error:
            return failed(str(error) or type(error).__name__)
        return read.judge(answer)

    async def write(self, write: Write[Any]) -> str | None:
        """Write; returns why it was refused, or None."""
        try:
            answer = await self.ask(write)
        except (OSError, RawClientError) as error:
            return str(error) or type(error).__name__
        codes = [code for code in write.errors(answer) if code is not ErrorCode.none]
        return codes[0].name if codes else None


async def run(
    nodes: Mapping[int, Address],
    *,
    rounds: int,
    kinds: Sequence[type[Kind]] = KINDS,
    writer: Address | None = None,
    login: PlainLogin | None = None,
    client_id: str = CLIENT_ID,
    in_parallel: bool = False,
    before_read: BeforeRead | None = None,
) -> Result:
    """Write `rounds` times for each kind and read each write back through every node as soon as it is acknowledged.

    Args:
        nodes: node id to the address to read through.
        rounds: writes for each kind, so `rounds * len(nodes)` reads for each.
        kinds: what to write; those that need SASL are left out when there is no `login`.
        writer: where to write; by default through the first node.
        login: who to be on every connection.
        client_id: of every connection.
        in_parallel: run the kinds at the same time; faster, but their latencies disturb each other.
        before_read: awaited between the acknowledgement and the reads of each round.

    Raises:
        WorkloadError: if what a kind needs before its first round cannot be made or does not arrive everywhere.
        OSError, RawClientError: if an address cannot be reached before the first round.
    """
    result = Result()
    where = Where(nodes=nodes, writer=writer, login=login, client_id=client_id)
    offered = [kind for kind in kinds if where.offers(kind)]
    if in_parallel:
        async with asyncio.TaskGroup() as tasks:
            for kind in offered:
                tasks.create_task(_run_kind(kind, result, where, rounds, before_read))
    else:
        for kind in offered:
            await _run_kind(kind, result, where, rounds, before_read)
    return result


async def measure_idle(
    nodes: Mapping[int, Address],
    *,
    reads: int,
    kinds: Sequence[type[Kind]] = KINDS,
    writer: Address | None = None,
    login: PlainLogin | None = None,
    client_id: str = CLIENT_ID,
) -> Result:
    """How long a read takes that has nothing to wait for: one write, and once it has arrived everywhere `reads` reads
    through each node, one after the other. Arguments and errors as of `run`."""
    result = Result()
    where = Where(nodes=nodes, writer=writer, login=login, client_id=client_id)
    for kind in filter(where.offers, kinds):
        async with _opened(kind, where, 1) as (job, writing, reading):
            await _must(writing, job.write(0))
            read = job.read(0)
            await _settle(reading, read, job.name)
            for _ in range(reads):
                for node_id, port in reading.items():
                    await _timed(result, job.name, node_id, port, read)
    return result


async def _run_kind(
    kind: type[Kind], result: Result, where: Where, rounds: int, before_read: BeforeRead | None
) -> None:
    async with _opened(kind, where, rounds) as (job, writing, reading):
        for number in range(rounds):
            refusal = await writing.write(job.write(number))
            if refusal is not None:
                result.write_errors[job.name, refusal] += 1
                continue
            result.writes[job.name] += 1
            if before_read is not None:
                await before_read(job)
            read = job.read(number)
            await asyncio.gather(*(_timed(result, job.name, node_id, port, read) for node_id, port in reading.items()))


async def _timed(result: Result, name: str, node_id: int, port: Port, read: Read[Any]) -> None:
    start_s = time.perf_counter()
    judgement = await port.read(read)
    result.tallies[name, node_id].count(judgement, (time.perf_counter() - start_s) * 1000)


@contextlib.asynccontextmanager
async def _opened(kind: type[Kind], where: Where, rounds: int) -> AsyncIterator[tuple[Kind, Port, Mapping[int, Port]]]:
    writing = where.port(where.writer or next(iter(where.nodes.values())))
    reading = {node_id: where.port(address) for node_id, address in where.nodes.items()}
    try:
        for port in reading.values():
            await port.open()
        apis = frozenset(await (await writing.open()).api_versions())
        job = kind(f"workload-{secrets.token_hex(4)}", rounds, apis)
        for write in job.setup():
            await _must(writing, write)
        settled = job.settled()
        if settled is not None:
            await _settle(reading, settled, job.name)
        yield job, writing, reading
        for write in job.cleanup():
            # What the rounds have deleted already is refused here.
            await writing.write(write)
    finally:
        for port in (writing, *reading.values()):
            await port.close()


async def _must(writing: Port, write: Write[Any]) -> None:
    refusal = await writing.write(write)
    if refusal is not None:
        raise WorkloadError(f"{type(write.request).__name__} through {writing.address} was refused: {refusal}")


async def _settle(reading: Mapping[int, Port], read: Read[Any], name: str) -> None:
    deadline_s = time.monotonic() + SETTLE_TIMEOUT_S
    for node_id, port in reading.items():
        while (judgement := await port.read(read)).verdict is not Verdict.FRESH:
            if time.monotonic() > deadline_s:
                state = judgement.cause or judgement.verdict.value
                raise WorkloadError(f"{name}: node {node_id} is not ready after {SETTLE_TIMEOUT_S} s: {state}")
            await asyncio.sleep(SETTLE_POLL_S)
