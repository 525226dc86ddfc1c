"""The quorum's messages on the wire: through Kafka's tables and back in every version, and what is refused."""

from typing import Any, Final, get_args

import pytest

from backend.metadata.image import Image
from backend.metadata.records import Batch, NoOpRecord, Record, TopicRecord
from backend.net.log_batches import decoded, encoded, log_batches, snapshot_image, snapshot_pieces
from backend.net.quorum_wire import (
    ACCEPTED,
    METADATA_TOPIC_ID,
    SENT,
    Refused,
    Unanswered,
    read_request,
    read_response,
    request_body,
    response_body,
    top_level_error,
)
from backend.raft.batches import EpochEnd, LogBatch, SnapshotId
from backend.raft.messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    Request,
    Response,
    VoteRequest,
    VoteResponse,
)
from codec import CodecError, decode_request, decode_response, encode_request, encode_response
from codec.api_keys import ApiKey
from codec.batches import encode_control_batch, placed
from codec.control_records import ControlRecord, ControlType
from codec.error_codes import ErrorCode

CLUSTER: Final = "cluster-a"
SNAPSHOT: Final = SnapshotId(end_offset=40, epoch=3)
RECORDS: Final[tuple[Record, ...]] = (TopicRecord(name="orders", topic_id=bytes(range(16))), NoOpRecord())


def batch_at(offset: int) -> LogBatch:
    return LogBatch(
        base_offset=offset,
        last_offset=offset + 1,
        leader_epoch=5,
        encoded=placed(encoded(RECORDS, timestamp_ms=1), offset, 5),
    )


REQUESTS: Final[tuple[tuple[ApiKey, Request], ...]] = (
    (
        ApiKey.VOTE,
        VoteRequest(replica_epoch=4, replica_id=2, last_offset_epoch=3, last_offset=70, pre_vote=True),
    ),
    (ApiKey.BEGIN_QUORUM_EPOCH, BeginQuorumEpochRequest(leader_id=2, leader_epoch=9)),
    (ApiKey.END_QUORUM_EPOCH, EndQuorumEpochRequest(leader_id=2, leader_epoch=9, preferred_successors=(3, 1))),
    (
        ApiKey.FETCH,
        FetchRequest(
            replica_id=7,
            current_leader_epoch=4,
            fetch_offset=50,
            last_fetched_epoch=3,
            max_wait_ms=500,
            high_watermark=48,
        ),
    ),
    (
        ApiKey.FETCH,
        FetchRequest(replica_id=7, current_leader_epoch=4, fetch_offset=0, last_fetched_epoch=0, max_wait_ms=0),
    ),
    (
        ApiKey.FETCH_SNAPSHOT,
        FetchSnapshotRequest(replica_id=7, current_leader_epoch=4, snapshot_id=SNAPSHOT, position=1000, max_bytes=4096),
    ),
)
RESPONSES: Final[tuple[tuple[ApiKey, Response], ...]] = (
    (ApiKey.VOTE, VoteResponse(leader_id=-1, leader_epoch=4, vote_granted=True)),
    (
        ApiKey.BEGIN_QUORUM_EPOCH,
        BeginQuorumEpochResponse(error_code=ErrorCode.FENCED_LEADER_EPOCH, leader_id=3, leader_epoch=9),
    ),
    (ApiKey.END_QUORUM_EPOCH, EndQuorumEpochResponse(leader_id=3, leader_epoch=9)),
    (
        ApiKey.FETCH,
        FetchResponse(
            leader_id=1, leader_epoch=5, high_watermark=51, log_start_offset=10, batches=(batch_at(50), batch_at(52))
        ),
    ),
    (ApiKey.FETCH, FetchResponse(leader_id=1, leader_epoch=5, diverging_epoch=EpochEnd(epoch=2, end_offset=30))),
    (ApiKey.FETCH, FetchResponse(leader_id=1, leader_epoch=5, snapshot_id=SNAPSHOT)),
    (
        ApiKey.FETCH,
        FetchResponse(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER, leader_id=2, leader_epoch=6),
    ),
    (
        ApiKey.FETCH_SNAPSHOT,
        FetchSnapshotResponse(
            leader_id=1, leader_epoch=5, snapshot_id=SNAPSHOT, size=5000, position=1000, piece=b"\x01\x02"
        ),
    ),
)
VERSIONS: Final = [
    (api_key, version) for api_key, (first, last) in ACCEPTED.items() for version in range(first, last + 1)
]


def test_every_message_is_tried() -> None:
    assert {type(request) for _, request in REQUESTS} == set(get_args(Request))
    assert {type(response) for _, response in RESPONSES} == set(get_args(Response))


@pytest.mark.parametrize(("api_key", "request_"), REQUESTS, ids=lambda value: type(value).__name__)
def test_a_request_arrives_as_it_was_sent(api_key: ApiKey, request_: Request) -> None:
    sent = request_body(request_, CLUSTER, to=3)
    assert (sent.api_key, sent.api_version) == (api_key, SENT[api_key])
    body = decode_request(api_key, sent.api_version, encode_request(*sent))
    assert read_request(api_key, body, CLUSTER, node_id=3) == request_


@pytest.mark.parametrize(("api_key", "response"), RESPONSES, ids=lambda value: type(value).__name__)
def test_a_response_arrives_as_it_was_sent_in_every_version(api_key: ApiKey, response: Response) -> None:
    first, last = ACCEPTED[api_key]
    for version in range(first, last + 1):
        payload = encode_response(api_key, version, response_body(response, version))
        assert read_response(api_key, decode_response(api_key, version, payload)) == response


@pytest.mark.parametrize(("api_key", "version"), VERSIONS, ids=str)
def test_requests_of_older_versions_are_understood(api_key: int, version: int) -> None:
    (request, *_) = [request for key, request in REQUESTS if key == api_key]
    body = request_body(request, CLUSTER, to=3).body
    for topic in body["topics"]:
        topic.setdefault("topic", "__cluster_metadata")
        for partition in topic["partitions"]:
            partition["preferred_successors"] = [3, 1]
    body["replica_id"] = 7
    read = read_request(api_key, decode_request(api_key, version, encode_request(api_key, version, body)), CLUSTER, 3)
    told: dict[str, Any] = {name: getattr(request, name) for name in request.__slots__}
    if api_key == ApiKey.VOTE and version < 2:
        told["pre_vote"] = False
    if api_key == ApiKey.FETCH and version < 18:
        told["high_watermark"] = None
    assert {name: getattr(read, name) for name in read.__slots__} == told


@pytest.mark.parametrize(("api_key", "request_"), REQUESTS, ids=lambda value: type(value).__name__)
def test_another_cluster_and_another_partition_are_refused(api_key: ApiKey, request_: Request) -> None:
    def refusal(**changed: Any) -> int:
        body = {**request_body(request_, CLUSTER, to=3).body, **changed}
        with pytest.raises(Refused) as caught:
            read_request(api_key, body, CLUSTER, node_id=3)
        version = SENT[api_key]
        payload = encode_response(api_key, version, caught.value.body)
        with pytest.raises(Unanswered):
            read_response(api_key, decode_response(api_key, version, payload))
        return int(caught.value.body["error_code"])

    body = request_body(request_, CLUSTER, to=3).body
    assert read_request(api_key, {**body, "cluster_id": None}, CLUSTER, node_id=3) == request_
    assert refusal(cluster_id="cluster-b") == ErrorCode.INCONSISTENT_CLUSTER_ID
    (topic,) = body["topics"]
    others = {"topic_name": "orders", "topic": "orders", "name": "orders", "topic_id": bytes(16)}
    other_topic = {key: others.get(key, value) for key, value in topic.items()}
    (partition,) = topic["partitions"]
    second = {key: 1 if key in ("partition_index", "partition") else value for key, value in partition.items()}
    for topics in ([], [topic, topic], [other_topic], [{**topic, "partitions": [second]}]):
        assert refusal(topics=topics) == ErrorCode.INVALID_REQUEST
    if "voter_id" in body:
        assert refusal(voter_id=4) == ErrorCode.INVALID_VOTER_KEY


def test_a_response_about_something_else_answers_nothing() -> None:
    body = response_body(RESPONSES[3][1], 18)
    assert body["responses"][0]["topic_id"] == METADATA_TOPIC_ID
    with pytest.raises(Unanswered, match="not about the metadata partition"):
        read_response(ApiKey.FETCH, {**body, "responses": []})
    with pytest.raises(Unanswered, match="UNKNOWN_SERVER_ERROR"):
        read_response(ApiKey.FETCH, {**top_level_error(ApiKey.FETCH, ErrorCode.NONE), "error_code": 31_000})


def test_a_flipped_bit_in_fetched_batches_is_noticed() -> None:
    content = batch_at(50).encoded + batch_at(52).encoded
    assert len(log_batches(content)) == 2
    for at in range(17, len(content) - len(batch_at(52).encoded)):
        damaged = bytearray(content)
        damaged[at] ^= 0x10
        with pytest.raises(CodecError):
            log_batches(bytes(damaged))
    with pytest.raises(CodecError):
        log_batches(content[:-1])


def test_control_records_count_as_records_that_change_nothing() -> None:
    record = ControlRecord(type=ControlType.SNAPSHOT_FOOTER, version=0, value={})
    control = encode_control_batch([record, record], base_offset=9, partition_leader_epoch=2, timestamp_ms=0)
    read = decoded(LogBatch(base_offset=9, last_offset=10, leader_epoch=2, encoded=control))
    assert (read.records, read.last_offset) == ((NoOpRecord(), NoOpRecord()), 10)
    assert decoded(batch_at(50)).records == RECORDS


def test_a_snapshot_is_read_from_pieces_of_any_length() -> None:
    image = Image.empty(CLUSTER).apply(Batch(base_offset=38, leader_epoch=3, records=RECORDS))
    whole = b"".join(snapshot_pieces(image, SNAPSHOT, timestamp_ms=7))
    for size in (1, 7, 100, len(whole)):
        pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
        assert snapshot_image(CLUSTER, SNAPSHOT, pieces) == image
    with pytest.raises(CodecError, match="ends within a batch"):
        snapshot_image(CLUSTER, SNAPSHOT, [whole[:-1]])
