"""Controllers and brokers as nodes: over the wire as separate processes have it, deposed, cut off, read through."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from backend.app import Backend, BrokerNode, ClusterSettings, embedded
from backend.metadata.records import NoOpRecord
from backend.net import metadata_log
from backend.net.broker import Attachment
from backend.raft.interfaces import HeadUnconfirmed, NotLeader
from codec.api_keys import ApiKey
from codec.error_codes import ErrorCode
from tests.support.state_client import StateClient

TIMEOUT_S: Final = 20
VOTERS: Final = (3001, 3002, 3003)
ASKED: Final = {"topics": [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def topic(name: str) -> dict[str, Any]:
    one = {"name": name, "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}
    return {"topics": [one], "timeout_ms": 10_000}


def attachment(cluster: Backend, node_id: int) -> Attachment:
    run = cluster.broker(node_id)._run
    assert run is not None
    assert run.attachment is not None
    return run.attachment


async def create(address: tuple[str, int], name: str) -> int:
    """Create a topic; returns the error code."""
    async with await StateClient.open(address) as client:
        answer = await client.ask(ApiKey.CREATE_TOPICS, 7, topic(name))
        code: int = answer.body["topics"][0]["error_code"]
        return code


async def topics(address: tuple[str, int]) -> tuple[int, list[str]]:
    """Error code and names of Metadata v13 without a token."""
    async with await StateClient.open(address) as client:
        body = (await client.ask(ApiKey.METADATA, 13, {"topics": None})).body
        return body["error_code"], [found["name"] for found in body["topics"]]


# Each node alone with its sockets and its directory, as in a process of its own


class Spread:
    """One `Backend` for each node: they meet on the wire only."""

    def __init__(self, folder: Path, stack: AsyncExitStack) -> None:
        self.settings = ClusterSettings(
            cluster_id="cluster-a",
            controllers={voter: ("127.0.0.1", free_port()) for voter in VOTERS},
            brokers=tuple(BrokerNode(node_id=node_id, port=free_port()) for node_id in (1, 2)),
            data_dir=folder,
            election_timeout_ms=100,
            fetch_timeout_ms=400,
        )
        self.stack = stack
        self.nodes: dict[int, Backend] = {}

    async def start(self, *node_ids: int) -> None:
        for node_id in node_ids:
            self.nodes[node_id] = Backend(replace(self.settings, local=frozenset({node_id})))
        async with asyncio.timeout(TIMEOUT_S):
            await asyncio.gather(*(self.stack.enter_async_context(self.nodes[node_id]) for node_id in node_ids))

    async def leader(self) -> int:
        """The controller that is active now, or as soon as there is one."""
        async with asyncio.timeout(TIMEOUT_S):
            while True:
                for voter in VOTERS:
                    if voter in self.nodes and self.nodes[voter].controllers[voter].is_active:
                        return voter
                await asyncio.sleep(0.01)

    def address(self, node_id: int) -> tuple[str, int]:
        return self.nodes[node_id].broker(node_id).address


@pytest.fixture
async def spread(tmp_path: Path) -> AsyncIterator[Spread]:
    """Three controllers and two brokers that serve."""
    async with AsyncExitStack() as stack:
        nodes = Spread(tmp_path, stack)
        await nodes.start(*VOTERS, 1, 2)
        yield nodes


async def test_nodes_that_meet_on_the_wire_are_one_cluster(spread: Spread) -> None:
    assert await create(spread.address(1), "orders") == 0
    assert await create(spread.address(2), "orders") == ErrorCode.TOPIC_ALREADY_EXISTS
    await reach(spread)
    assert await topics(spread.address(2)) == (0, ["orders"])
    leader = await spread.leader()
    async with await StateClient.open(spread.address(1)) as client:
        answer = await client.ask(ApiKey.DESCRIBE_QUORUM, 2, ASKED)
        partition = answer.body["topics"][0]["partitions"][0]
        assert (answer.body["error_code"], partition["leader_id"]) == (0, leader)
        assert [replica["replica_id"] for replica in partition["observers"]] == [1, 2]
        assert {node["node_id"] for node in answer.body["nodes"]} == set(VOTERS)


async def test_a_leader_that_stops_names_its_successor_and_nothing_is_lost(spread: Spread) -> None:
    assert await create(spread.address(1), "before") == 0
    leader = await spread.leader()
    epoch = spread.nodes[leader].controllers[leader].epoch
    await spread.nodes.pop(leader).stop()
    # The write waits for the next leader.
    assert await create(spread.address(1), "after") == 0
    successor = await spread.leader()
    assert spread.nodes[successor].controllers[successor].epoch > epoch
    await spread.start(leader)
    await reach(spread)
    assert await topics(spread.address(2)) == (0, ["after", "before"])


async def test_only_the_active_controller_decides_and_all_say_who_it_is(spread: Spread) -> None:
    leader = await spread.leader()
    for voter, address in spread.settings.controllers.items():
        async with await StateClient.open(address) as client:
            created = (await client.ask(ApiKey.CREATE_TOPICS, 7, topic(f"by-{voter}"))).body["topics"][0]
            assert created["error_code"] == (0 if voter == leader else ErrorCode.NOT_CONTROLLER)
            described = (await client.ask(ApiKey.DESCRIBE_QUORUM, 2, ASKED)).body
            assert described["error_code"] == (0 if voter == leader else ErrorCode.NOT_LEADER_OR_FOLLOWER)
            cluster = (await client.ask(ApiKey.DESCRIBE_CLUSTER, 2, {"endpoint_type": 2})).body
            assert (cluster["cluster_id"], cluster["controller_id"]) == ("cluster-a", leader)
            told = {broker["broker_id"]: (broker["host"], broker["port"]) for broker in cluster["brokers"]}
            assert told == spread.settings.controllers
            wrong = (await client.ask(ApiKey.DESCRIBE_CLUSTER, 2, {"endpoint_type": 1})).body
            assert wrong["error_code"] == ErrorCode.MISMATCHED_ENDPOINT_TYPE
            versions = (await client.ask(ApiKey.API_VERSIONS, 3, SOFTWARE)).body
            assert ApiKey.VOTE in {row["api_key"] for row in versions["api_keys"]}


SOFTWARE: Final = {"client_software_name": "t", "client_software_version": "1"}


async def reach(spread: Spread) -> None:
    """Both brokers have everything."""
    head = max(node.head_offset for node in spread.nodes.values())
    async with asyncio.timeout(TIMEOUT_S):
        await asyncio.gather(
            *(spread.nodes[node_id].broker(node_id).publication.reach_effect(head) for node_id in (1, 2))
        )


# A network that is cut


@pytest.fixture
async def cluster() -> AsyncIterator[Backend]:
    """Three controllers, two brokers, no NoOps, short time-outs, linearizable reads."""
    settings = replace(
        embedded(brokers=2, noop_interval_ms=0),
        election_timeout_ms=100,
        fetch_timeout_ms=300,
        linearizable=True,
    )
    async with Backend(settings) as backend:
        yield backend


async def test_a_leader_that_is_cut_off_confirms_no_head_and_commits_nothing(
    cluster: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metadata_log, "HEAD_TIMEOUT_MS", 100)
    former = cluster.controller
    old = next(node for node in cluster.controllers.values() if node.is_active)
    before, epoch = cluster.head_offset, old.epoch
    cluster.network.cut_off(old.node_id, 1)
    lost = asyncio.ensure_future(former.append([NoOpRecord()]))
    # Broker 1 hears the old leader only, and that one cannot tell what is committed.
    with pytest.raises(HeadUnconfirmed):
        await attachment(cluster, 1).log.confirmed_head()
    async with asyncio.timeout(TIMEOUT_S):
        with pytest.raises(NotLeader):
            await lost
        assert await create(cluster.broker(2).address, "orders") == 0
        cluster.network.cut_off()
        monkeypatch.undo()
        assert await topics(cluster.broker(1).address) == (0, ["orders"])
    assert max(node.epoch for node in cluster.controllers.values()) > epoch
    assert cluster.head_offset > before


async def test_a_linearizable_read_waits_for_the_lag_and_shows_all_that_was_committed(cluster: Backend) -> None:
    loop = asyncio.get_running_loop()
    cluster.broker(2).replay_delay_ms = 200
    for name in ("a", "b"):
        assert await create(cluster.broker(1).address, name) == 0
        began = loop.time()
        code, names = await topics(cluster.broker(2).address)
        assert (code, name in names) == (0, True)
        assert loop.time() - began > 0.1
    cluster.broker(2).paused = True
    # A broker that has all of it waits for nobody.
    assert await topics(cluster.broker(1).address) == (0, ["a", "b"])


async def test_a_linearizable_read_that_cannot_be_had_in_time_says_so(cluster: Backend) -> None:
    settings = replace(cluster.settings, state_wait_ms=50)
    async with Backend(settings) as hasty:
        hasty.broker(2).paused = True
        assert await create(hasty.broker(1).address, "a") == 0
        assert await topics(hasty.broker(2).address) == (ErrorCode.REQUEST_TIMED_OUT, [])
