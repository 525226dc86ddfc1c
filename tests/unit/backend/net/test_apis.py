"""The server side of the proposal on one broker: waiting, refusing, and the order of point 4. No socket."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

import pytest

from backend.metadata.image import Image
from backend.metadata.reads import Reader, answer
from backend.metadata.records import Batch, NoOpRecord, Record, TopicRecord
from backend.metadata.writes import WriteRequest
from backend.net.active_controller import Registration, Written
from backend.net.apis import Apis, Identity
from backend.net.listener import Unserved
from backend.net.publication import Publication
from backend.net.state_check import STALE_METADATA
from backend.raft.interfaces import Fetched, Head, HeadUnconfirmed, QuorumState, Snapshot
from codec import CodecError, decode_response, encode_request
from codec.api_keys import ApiKey
from codec.headers import (
    ConsistencyState,
    RequestHeader,
    encode_request_header,
    read_response_header,
)

CLUSTER: Final = "cluster-a"
TOPIC: Final = TopicRecord(name="orders", topic_id=bytes(range(16)))

ANY_RULE: Final = {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1}


class Log:
    """An observer whose head the test sets: an offset, None for one that cannot be had, or a future to wait for."""

    high_watermark = 0
    leader_id = 3001
    leader_epoch = 1

    def __init__(self) -> None:
        self.head_offset: int | None = 1_000_000
        self.asked = asyncio.Event()
        self.confirm = asyncio.Event()
        self.confirm.set()

    async def fetch(self, from_offset: int, records_max: int) -> Fetched[Record, Image]:
        raise AssertionError("nobody fetches here")

    async def confirmed_head(self) -> Head:
        self.asked.set()
        await self.confirm.wait()
        if self.head_offset is None:
            raise HeadUnconfirmed
        return Head(high_watermark=self.head_offset + 1, leader_epoch=1)

    async def find_leader(self) -> int:
        raise AssertionError("nobody looks for it here")

    async def compact(self, snapshot: Snapshot[Image]) -> int:
        raise AssertionError("nobody compacts here")

    async def close(self) -> None:
        raise AssertionError("nobody closes it here")


class Leader:
    """An active controller that commits far ahead of the broker."""

    offset = 77

    async def write(self, request: WriteRequest) -> Written:
        return Written(response={"topics": []}, offset=self.offset)

    async def register(self, registration: Registration) -> int:
        raise AssertionError("nobody registers here")

    async def heartbeat(self, broker_id: int, broker_epoch: int, image_offset: int, *, leaving: bool) -> bool:
        raise AssertionError("nobody beats here")

    async def describe(self) -> QuorumState:
        return QuorumState(leader_id=3001, leader_epoch=1, high_watermark=61, voters=(), observers=())


class Side:
    """One broker's server side at offset 5, with the means to publish and to ask."""

    def __init__(self, *, state_wait_ms: int = 60_000, read: Any = answer) -> None:
        self.log = Log()
        self.publication = Publication(Image.empty(CLUSTER))
        self.apis = Apis(
            Identity(node_id=1, cluster_id=CLUSTER, listener_name="PLAINTEXT", controllers={}, static_configs={}),
            self.publication,
            self.log,
            Leader(),
            state_wait_ms=state_wait_ms,
            read=read,
        )
        self.publish(5)

    def publish(self, offset: int, *records: Record) -> None:
        """Show and act upon an image at `offset` that has these records."""
        self.show(offset, *records)
        self.publication.act()

    def show(self, offset: int, *records: Record) -> None:
        """Show an image at `offset`."""
        image = self.publication.image
        padding = (NoOpRecord(),) * (offset - image.highest_offset - len(records))
        batch = Batch(base_offset=image.highest_offset + 1, leader_epoch=1, records=(*padding, *records))
        self.publication.show(image.apply(batch))

    async def ask(
        self,
        api_key: int,
        api_version: int,
        body: Mapping[str, Any] | None = None,
        state: ConsistencyState | None = None,
    ) -> tuple[dict[str, Any], ConsistencyState | None]:
        """Body of the answer, and the state in its header."""
        header = RequestHeader(
            api_key=api_key, api_version=api_version, correlation_id=7, client_id="t", consistency_state=state
        )
        payload = encode_request_header(header) + encode_request(api_key, api_version, body or {})
        answered = await self.apis.answer(payload)
        answer_header, at = read_response_header(answered, api_key, api_version)
        assert answer_header.correlation_id == 7
        return decode_response(api_key, api_version, answered, at), answer_header.consistency_state

    async def ask_for_topics(self, token: int) -> tuple[int, list[str]]:
        """Error code and topics of Metadata v13 with a token."""
        body, _ = await self.ask(ApiKey.METADATA, 13, {"topics": None}, state_at(token))
        return body["error_code"], [topic["name"] for topic in body["topics"]]


def state_at(token: int) -> ConsistencyState:
    return ConsistencyState(cluster_id=CLUSTER, consistency_token=token)


async def test_the_position_in_the_header_is_read_after_the_answer_was_built() -> None:
    def read_then_publish(api_key: int, api_version: int, request: Mapping[str, Any], reader: Reader) -> dict[str, Any]:
        body = answer(api_key, api_version, request, reader)
        side.publish(9, TOPIC)
        return body

    side = Side(read=read_then_publish)
    body, state = await side.ask(ApiKey.METADATA, 13, {"topics": None})
    assert [topic["name"] for topic in body["topics"]] == []
    assert state == state_at(9)


async def test_every_answer_with_a_tagged_header_carries_the_state_also_without_being_asked() -> None:
    side = Side()
    assert await side.ask(ApiKey.DESCRIBE_CLUSTER, 2) == (
        (await side.ask(ApiKey.DESCRIBE_CLUSTER, 2, state=ConsistencyState()))[0],
        state_at(5),
    )


async def test_an_answer_without_room_in_its_header_carries_none() -> None:
    side = Side()
    for api_key, api_version in ((ApiKey.METADATA, 8), (ApiKey.DESCRIBE_CONFIGS, 3), (ApiKey.API_VERSIONS, 4)):
        _, state = await side.ask(api_key, api_version, {"client_software_name": "t", "client_software_version": "1"})
        assert state is None


async def test_a_write_answers_with_the_leaders_offset_where_that_is_larger() -> None:
    side = Side()
    assert (await side.ask(ApiKey.CREATE_TOPICS, 7))[1] == state_at(Leader.offset)
    side.publish(100)
    assert (await side.ask(ApiKey.CREATE_TOPICS, 7))[1] == state_at(100)


async def test_the_quorum_as_described_is_covered_by_the_token() -> None:
    _, state = await Side().ask(ApiKey.DESCRIBE_QUORUM, 2, {"topics": []})
    assert state == state_at(60)


@pytest.mark.parametrize("token", [-1, 0, 4, 5])
async def test_a_token_that_is_reached_is_answered_without_asking_the_leader(token: int) -> None:
    side = Side()
    assert await side.ask_for_topics(token) == (0, [])
    assert not side.log.asked.is_set()


async def test_a_read_waits_for_its_token_and_shows_what_it_waited_for() -> None:
    side = Side()
    asking = asyncio.create_task(side.ask_for_topics(8))
    await side.log.asked.wait()
    side.publish(7)
    assert not asking.done()
    side.publish(8, TOPIC)
    assert await asking == (0, ["orders"])


async def test_a_read_whose_token_is_not_reached_in_time_is_refused() -> None:
    side = Side(state_wait_ms=1)
    assert await side.ask_for_topics(8) == (STALE_METADATA, [])


async def test_without_time_to_wait_a_read_is_refused_at_once() -> None:
    side = Side(state_wait_ms=0)
    assert await side.ask_for_topics(6) == (STALE_METADATA, [])
    assert not side.log.asked.is_set()


async def test_a_token_above_a_head_confirmed_after_arrival_is_refused_at_once() -> None:
    side = Side()
    side.log.head_offset = 7
    assert await side.ask_for_topics(8) == (STALE_METADATA, [])
    waiting = asyncio.create_task(side.ask_for_topics(7))
    side.log.asked.clear()
    await side.log.asked.wait()
    side.publish(7)
    assert await waiting == (0, [])


async def test_a_head_that_cannot_be_had_proves_nothing() -> None:
    side = Side()
    side.log.head_offset = None
    waiting = asyncio.create_task(side.ask_for_topics(8))
    await side.log.asked.wait()
    side.publish(8)
    assert await waiting == (0, [])


async def test_a_slow_leader_does_not_hold_up_a_read_whose_token_is_reached() -> None:
    side = Side()
    side.log.confirm.clear()
    waiting = asyncio.create_task(side.ask_for_topics(8))
    await side.log.asked.wait()
    side.publish(8)
    assert await waiting == (0, [])


async def test_another_cluster_is_refused_whatever_the_api() -> None:
    side = Side()
    other = ConsistencyState(cluster_id="cluster-b", consistency_token=0)
    assert (await side.ask(ApiKey.METADATA, 13, {"topics": None}, other))[0]["error_code"] == 104
    topics = {"topics": [{"name": "orders", "num_partitions": 1, "replication_factor": 1}]}
    body, state = await side.ask(ApiKey.CREATE_TOPICS, 7, topics, other)
    assert [topic["error_code"] for topic in body["topics"]] == [104]
    assert state == state_at(5)
    software = {"client_software_name": "t", "client_software_version": "1"}
    assert (await side.ask(ApiKey.API_VERSIONS, 4, software, other))[0]["error_code"] == 104


async def test_rules_are_read_from_what_is_in_effect_and_wait_for_that() -> None:
    side = Side()
    side.show(8)
    asking = asyncio.create_task(side.ask(ApiKey.DESCRIBE_ACLS, 3, ANY_RULE, state_at(8)))
    await side.log.asked.wait()
    assert not asking.done()
    side.publication.act()
    assert (await asking)[0]["error_code"] == 0


@pytest.mark.parametrize("api_version", range(5))
async def test_the_features_epoch_is_the_offset_of_the_image(api_version: int) -> None:
    software = {"client_software_name": "t", "client_software_version": "1"}
    body, _ = await Side().ask(ApiKey.API_VERSIONS, api_version, software)
    assert body["error_code"] == 0
    assert body.get("finalized_features_epoch", 5) == 5
    offered = {row["api_key"] for row in body["api_keys"]}
    assert {ApiKey.METADATA, ApiKey.CREATE_TOPICS, ApiKey.DESCRIBE_QUORUM} < offered
    assert offered.isdisjoint({ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.JOIN_GROUP})


@pytest.mark.parametrize("name", ["", "-a", "a b", "a_"])
async def test_a_client_with_an_impossible_name_is_told_so(name: str) -> None:
    software = {"client_software_name": name, "client_software_version": "1"}
    assert (await Side().ask(ApiKey.API_VERSIONS, 3, software))[0]["error_code"] == 42


async def test_an_api_versions_of_tomorrow_is_answered_in_v0() -> None:
    header = RequestHeader(api_key=ApiKey.API_VERSIONS, api_version=5, correlation_id=9)
    answered = await Side().apis.answer(encode_request_header(header) + b"what v5 may hold")
    body = decode_response(ApiKey.API_VERSIONS, 0, answered, 4)
    assert body == {"error_code": 35, "api_keys": [{"api_key": 18, "min_version": 0, "max_version": 4}]}


@pytest.mark.parametrize(
    ("api_key", "api_version", "reason"),
    [
        (ApiKey.PRODUCE, 9, "it asks for API key 0, which is not offered"),
        (999, 0, "it asks for API key 999, which is not offered"),
        (-5, 0, "it asks for API key -5, which is not offered"),
        (ApiKey.METADATA, 14, "it asks for METADATA v14; offered are v0 to v13"),
        (ApiKey.CREATE_TOPICS, 1, "it asks for CREATE_TOPICS v1; offered are v2 to v7"),
    ],
)
async def test_what_is_not_offered_closes_the_connection(api_key: int, api_version: int, reason: str) -> None:
    payload = api_key.to_bytes(2, signed=True) + api_version.to_bytes(2) + bytes(8)
    with pytest.raises(Unserved, match=reason):
        await Side().apis.answer(payload)


async def test_bytes_behind_the_body_are_ignored_as_kafka_does() -> None:
    """librdkafka's Metadata request has three of them."""
    header = RequestHeader(api_key=ApiKey.METADATA, api_version=12, correlation_id=1)
    payload = encode_request_header(header) + encode_request(ApiKey.METADATA, 12, {"topics": None}) + bytes(3)
    answered = await Side().apis.answer(payload)
    assert decode_response(ApiKey.METADATA, 12, answered, read_response_header(answered, 3, 12)[1])["topics"] == []


async def test_a_malformed_request_closes_the_connection() -> None:
    payload = encode_request_header(RequestHeader(api_key=ApiKey.METADATA, api_version=13, correlation_id=1))
    with pytest.raises(CodecError):
        await Side().apis.answer(payload + b"\xff\xff\xff\xff\xff")
    with pytest.raises(CodecError):
        await Side().apis.answer(b"\0")


async def test_an_answer_that_no_version_can_hold_closes_the_connection() -> None:
    def read(api_key: int, api_version: int, request: Mapping[str, Any], reader: Reader) -> dict[str, Any]:
        return {"error_code": 0, "error_message": "x" * 40_000}

    with pytest.raises(Unserved, match="the answer cannot be encoded: "):
        await Side(read=read).ask(ApiKey.DESCRIBE_CLUSTER, 2)
