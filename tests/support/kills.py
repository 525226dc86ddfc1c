"""Writes and reads on a cluster whose nodes are killed, and what must hold of them all the same.

Every register is a topic whose `retention.ms` one writer raises, one at a time, so its value may only ever grow. A
write whose answer is lost may be done or not, now or later: its register is given up, and only its floor counts.

    durable       what was acknowledged is there in the end, at every broker
    linearizable  a read shows every register at or above all that was acknowledged, or read by anybody, before it began
"""

import asyncio
import contextlib
import itertools
import random
import time
from dataclasses import dataclass, field
from typing import Any, Final

from codec.api_keys import ApiKey
from codec.error_codes import ErrorCode
from tests.support.address import Address
from tests.support.backend_processes import BackendProcesses
from tests.support.state_client import Answer, StateClient

KEY: Final = "retention.ms"
TOPIC: Final = 2
OF_TOPIC: Final = 1
"""Where a value comes from that was set; any other is a default."""
SET: Final = 0
REQUEST_TIMEOUT_S: Final = 12.0
PAUSE_S: Final = 0.02
QUORUM: Final = {"topics": [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]}
_LOST: Final = (OSError, EOFError, TimeoutError)


@dataclass
class History:
    """What clients know, and what they found wrong.

    Attributes:
        floors: register to the highest value that was acknowledged or read.
        faults: what must not be, in words.
        acknowledged: how many writes were; reads: how many reads were answered; unknown: writes without an answer.
        commits: when each acknowledged write was sent and when it was answered, in s of the monotonic clock.
    """

    floors: dict[str, int] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    acknowledged: int = 0
    reads: int = 0
    unknown: int = 0
    commits: list[tuple[float, float]] = field(default_factory=list)

    def saw(self, values: dict[str, int], before: dict[str, int], where: str) -> None:
        """Judge a read that began when `before` were the floors."""
        self.reads += 1
        for name, floor in before.items():
            if values.get(name, -1) < floor:
                self.faults.append(f"{where} shows {name} at {values.get(name)}, {floor} was known before it was asked")
        for name, value in values.items():
            self.floors[name] = max(self.floors.get(name, -1), value)

    def first_commit_after(self, moment_s: float) -> float:
        """Seconds from a moment to the answer of the first write that was sent after it, infinite for none."""
        return min((answered for sent, answered in self.commits if sent >= moment_s), default=float("inf")) - moment_s

    def waits_s(self, deaths: list[tuple[float, bool]]) -> list[float]:
        """How long each death of a leader kept writes waiting, where no other death came in between; sorted."""
        waits = []
        for (died_s, led), (next_s, _) in itertools.pairwise([*deaths, (float("inf"), False)]):
            wait_s = self.first_commit_after(died_s)
            if led and died_s + wait_s < next_s:
                waits.append(wait_s)
        return sorted(waits)

    async def commit_after(self, moment_s: float) -> None:
        """Wait for the answer of a write that was sent after a moment."""
        seen = len(self.commits)
        while not any(sent >= moment_s for sent, _ in self.commits[seen:]):  # noqa: ASYNC110 -- it takes seconds
            await asyncio.sleep(0.05)


class Client:
    """Asks one broker after the other, the next after each failure."""

    def __init__(self, addresses: list[Address], first: int) -> None:
        self._addresses = itertools.cycle(addresses[first % len(addresses) :] + addresses[: first % len(addresses)])
        self.at = next(self._addresses)
        self._client: StateClient | None = None

    async def ask(self, api_key: int, api_version: int, body: dict[str, Any]) -> Answer:
        """One request.

        Raises:
            OSError, EOFError, TimeoutError: No answer; what became of it is not known.
        """
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT_S):
                if self._client is None:
                    self._client = await StateClient.open(self.at)
                return await self._client.ask(api_key, api_version, body)
        except BaseException:
            await self.close()
            self.at = next(self._addresses)
            raise

    async def close(self) -> None:
        """Hang up."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()


async def write(history: History, client: Client, writer: int, stop: asyncio.Event) -> None:
    """Raise one register after the other until `stop`."""
    for generation in itertools.count():
        name = f"register-{writer}-{generation}"
        topic = {"name": name, "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}
        if not await _done(history, client, ApiKey.CREATE_TOPICS, 7, {"topics": [topic], "timeout_ms": 10_000}):
            if stop.is_set():
                return
            continue
        for value in itertools.count(1):
            if stop.is_set():
                return
            change = {"name": KEY, "config_operation": SET, "value": str(value)}
            resource = {"resource_type": TOPIC, "resource_name": name, "configs": [change]}
            if not await _done(history, client, ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, {"resources": [resource]}):
                break
            history.floors[name] = max(history.floors.get(name, -1), value)
            await asyncio.sleep(PAUSE_S)


async def read(history: History, client: Client, stop: asyncio.Event) -> None:
    """Read all registers until `stop`."""
    while not stop.is_set():
        before = dict(history.floors)
        try:
            values = await values_at(client, before)
        except _LOST:
            await asyncio.sleep(PAUSE_S)
            continue
        if values is not None:
            history.saw(values, before, f"the broker at {client.at}")
        await asyncio.sleep(PAUSE_S)


async def values_at(client: Client, registers: dict[str, int]) -> dict[str, int] | None:
    """The registers as a broker shows them; None when it says that it cannot in time."""
    resources = [{"resource_type": TOPIC, "resource_name": name, "configuration_keys": [KEY]} for name in registers]
    answer = await client.ask(ApiKey.DESCRIBE_CONFIGS, 4, {"resources": resources})
    values = {}
    for result in answer.body["results"]:
        if result["error_code"] == ErrorCode.REQUEST_TIMED_OUT:
            return None
        # A topic that the broker does not know shows nothing, which is below every floor.
        for config in result["configs"]:
            if config["config_source"] == OF_TOPIC:
                values[result["resource_name"]] = int(config["value"])
    return values


async def final_values(address: Address, registers: dict[str, int]) -> dict[str, int]:
    """The registers as one broker shows them, as soon as it can."""
    client = Client([address], 0)
    try:
        while True:
            values = await values_at(client, registers)
            if values is not None:
                return values
    finally:
        await client.close()


async def leader_of(cluster: BackendProcesses) -> int:
    """The leader, by the word of any broker; -1 for none."""
    for address in cluster.brokers.values():
        with contextlib.suppress(*_LOST):
            async with asyncio.timeout(REQUEST_TIMEOUT_S), await StateClient.open(address) as client:
                answer = await client.ask(ApiKey.DESCRIBE_QUORUM, 2, QUORUM)
            if answer.body["error_code"] == ErrorCode.NONE:
                leader_id: int = answer.body["topics"][0]["partitions"][0]["leader_id"]
                return leader_id
    return -1


async def kill_and_start(
    cluster: BackendProcesses, rng: random.Random, until_s: float, pause_s: tuple[float, float]
) -> list[tuple[float, bool]]:
    """Kill nodes and start them again, one at a time; returns when each died, and whether it led."""
    deaths: list[tuple[float, bool]] = []
    while time.monotonic() < until_s:
        await asyncio.sleep(rng.uniform(*pause_s))
        # Leaders die most often: that is what costs time.
        leader_id = await leader_of(cluster)
        others = [*cluster.controllers, *cluster.brokers]
        victim = leader_id if leader_id >= 0 and rng.random() < 0.6 else rng.choice(others)
        died_s = time.monotonic()
        await asyncio.to_thread(cluster.kill, victim)
        deaths.append((died_s, victim == leader_id))
        await asyncio.sleep(rng.uniform(0.0, pause_s[1]))
        cluster.start(victim)
    return deaths


async def _done(history: History, client: Client, api_key: int, api_version: int, body: dict[str, Any]) -> bool:
    """Whether a write is acknowledged; when that is not known, it counts as unknown."""
    sent_s = time.monotonic()
    try:
        answer = await client.ask(api_key, api_version, body)
    except _LOST:
        history.unknown += 1
        await asyncio.sleep(PAUSE_S)
        return False
    if answer.errors() != {0}:
        history.unknown += 1
        await asyncio.sleep(PAUSE_S)
        return False
    history.acknowledged += 1
    history.commits.append((sent_s, time.monotonic()))
    return True
