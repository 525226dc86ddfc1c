"""Our codec and Kafka's Java classes read each other's bytes: every table, header and record, in every version.

Random values from the tables, seeded. What we write, Java reads as the same value and writes as the same bytes; what
Java writes, we read. Kafka 3.9 judges the old versions, Kafka 4.4 the new ones.
"""

import base64
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st

from codec import batches
from codec.api_keys import ApiKey
from codec.batches import encode_batch, read_batch
from codec.compiled import decoder, encoder
from codec.errors import CodecError
from codec.fixed_length import fit_node_endpoints
from codec.headers import (
    ConsistencyState,
    RequestHeader,
    ResponseHeader,
    encode_request_header,
    encode_response_header,
    read_request_header,
    read_response_header,
)
from codec.metadata_records import METADATA_TABLES
from codec.records import LogRecord
from codec.registry import known_versions, request_table, response_table
from codec.schema import Array, Struct, Table
from codec.walk import node_endpoints, walk_tail
from tests.differential.definitions import snake_case
from tests.differential.java_oracle import JavaError, Oracle
from tests.support.message_values import values

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(600)]

KAFKAS: Final = ("3.9.1", "4.4.0")
API_KEYS: Final = [key for key in range(128) if known_versions(key) is not None]
TAG_MAX: Final = 2**31 - 2
"""Java keeps tags in an int, wants them in ascending order, and uses the greatest for itself."""
RENAMED: Final = {
    "client_metrics_resources": "config_resources",
    "name": "resource_name",
    "candidate_id": "replica_id",
    "candidate_epoch": "replica_epoch",
    "candidate_directory_id": "replica_directory_id",
}
"""What Kafka 3.9 called otherwise, without another byte."""

# Without shrinking: a failure shows its bytes anyway, and asking Java a thousand times more takes minutes.
few = settings(max_examples=8, deadline=None, database=None, phases=[Phase.explicit, Phase.generate])
some = settings(few, max_examples=100)


@pytest.fixture(scope="module")
def oracles(
    kafka_jars: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], Oracle]]:
    """The oracle of a version of Kafka, started when it is first asked for."""
    with ExitStack() as stack:

        @cache
        def start(version: str) -> Oracle:
            kafka_jars(version)
            return stack.enter_context(Oracle(version, tmp_path_factory.mktemp(f"oracle-{version}")))

        yield start


@pytest.fixture(params=KAFKAS)
def oracle(request: pytest.FixtureRequest, oracles: Callable[[str], Oracle]) -> Oracle:
    """The oracle of each version of Kafka."""
    return oracles(request.param)


def test_together_they_know_every_version(oracles: Callable[[str], Oracle]) -> None:
    for key in API_KEYS:
        known = {version for kafka in KAFKAS for version in oracles(kafka).versions(key)}
        assert known == set(known_versions(key) or ()), key


@pytest.mark.parametrize("api_key", API_KEYS)
def test_messages_are_the_same_to_both(oracle: Oracle, api_key: int) -> None:
    for kind, table in (("request", request_table(api_key)), ("response", response_table(api_key))):
        for version in oracle.versions(api_key):
            check_table(oracle, kind, api_key, table, version)


@pytest.mark.parametrize("type_id", METADATA_TABLES)
def test_metadata_records_are_the_same_to_both(oracle: Oracle, type_id: int) -> None:
    table = METADATA_TABLES[type_id]
    for version in range(table.versions.first, table.versions.last + 1):
        if oracle.message("metadata", type_id, version, encoder(table, version)({})) is not None:
            check_table(oracle, "metadata", type_id, table, version)


def check_table(oracle: Oracle, kind: str, number: int, table: Table, version: int) -> None:
    tagged = tagged_names(table.body)

    @seed(20261130)
    @few
    @given(values(table, version))
    def check(value: dict[str, Any]) -> None:
        value = small_tags(value)
        encoded = encoder(table, version)(value)
        seen = oracle.message(kind, number, version, encoded)
        assert seen is not None
        differ(value, seen.value, tagged, "")
        assert seen.encoded == encoded
        assert decoder(table, version)(seen.encoded, 0) == (value, len(encoded))

    check()


def tagged_names(of: Struct) -> frozenset[str]:
    """Every field of the table that may stand among the tags: JSON leaves those out that say no more than a default."""
    names: set[str] = set()
    todo = [of]
    while todo:
        for field in todo.pop().fields:
            if field.tag is not None:
                names.add(field.name)
            inner = field.type.element if isinstance(field.type, Array) else field.type
            if isinstance(inner, Struct):
                todo.append(inner)
    return frozenset(names)


def small_tags(value: Any) -> Any:
    """The value with tags that fit Java."""
    if isinstance(value, list):
        return [small_tags(part) for part in value]
    if not isinstance(value, dict):
        return value
    return {
        name: {min(tag, TAG_MAX): content for tag, content in part.items()}
        if name == "unknown_tags"
        else small_tags(part)
        for name, part in value.items()
    }


def our_name(javas: str, ours: Mapping[str, Any]) -> str:
    """The name of a field in JSON as our tables have it."""
    name = snake_case(javas).removesuffix("_size_in_bytes")
    return name if name in ours else RENAMED.get(name, name)


def differ(ours: Any, javas: Any, tagged: frozenset[str], path: str) -> None:
    """Fail where the two values are not the same."""
    match ours:
        case dict():
            named = {our_name(name, ours): part for name, part in javas.items()}
            assert named.keys() <= ours.keys(), path
            assert ours.keys() - named.keys() <= tagged | {"unknown_tags"}, path
            for name, part in named.items():
                differ(ours[name], part, tagged, f"{path}.{name}")
        case list():
            assert isinstance(javas, list), path
            assert len(ours) == len(javas), path
            for mine, other in zip(ours, javas, strict=True):
                differ(mine, other, tagged, path)
        case bytes() if isinstance(javas, int):
            # Of records, JSON has the size.
            assert len(ours) == javas, path
        case float():
            # JSON has no infinity; Jackson writes it as a text.
            assert ours == float(javas), path
        case bytes():
            as_bytes, as_uuid = base64.b64encode(ours), base64.urlsafe_b64encode(ours).rstrip(b"=")
            assert javas.encode() == as_bytes or (len(ours) == 16 and javas.encode() == as_uuid), path
        case _:
            assert type(ours) is type(javas), path
            assert ours == javas, path


int32s = st.integers(-(2**31), 2**31 - 1)
tags = st.dictionaries(st.integers(1, TAG_MAX), st.binary(max_size=5), max_size=3)
states = st.none() | st.builds(
    ConsistencyState,
    cluster_id=st.none() | st.text(max_size=6),
    consistency_token=st.integers(-(2**63), 2**63 - 1),
)


@pytest.mark.parametrize("api_key", API_KEYS)
def test_headers_are_the_same_to_both(oracle: Oracle, api_key: int) -> None:
    @seed(20261130)
    @few
    @given(int32s, st.none() | st.text(max_size=6), states, tags)
    def check(correlation_id: int, client_id: str | None, state: ConsistencyState | None, unknown: Any) -> None:
        for version in oracle.versions(api_key):
            header = encode_request_header(
                RequestHeader(
                    api_key=api_key,
                    api_version=version,
                    correlation_id=correlation_id,
                    client_id=client_id,
                    consistency_state=state,
                    unknown_tags=unknown,
                )
            )
            seen = oracle.message("request-header", api_key, version, header)
            assert seen is not None
            assert seen.encoded == header
            assert (seen.value["requestApiKey"], seen.value["requestApiVersion"]) == (api_key, version)
            read, end = read_request_header(seen.encoded)
            assert (read.correlation_id, end) == (seen.value["correlationId"], len(header))
            assert read.client_id == seen.value["clientId"]
            answer = encode_response_header(
                ResponseHeader(correlation_id=correlation_id, consistency_state=state, unknown_tags=unknown),
                api_key,
                version,
            )
            seen = oracle.message("response-header", api_key, version, answer)
            assert seen is not None
            assert (seen.encoded, seen.value) == (answer, {"correlationId": correlation_id})
            assert read_response_header(seen.encoded, api_key, version)[1] == len(answer)

    check()


contents = st.none() | st.binary(max_size=40)
headers = st.lists(st.tuples(st.text(max_size=6), contents), max_size=3).map(tuple)
log_records = st.builds(
    LogRecord,
    key=contents,
    value=contents,
    headers=headers,
    timestamp_delta=st.integers(0, 2**40),
    offset_delta=st.just(0),
)


def test_record_batches_are_the_same_to_both(oracle: Oracle) -> None:
    @seed(20261130)
    @some
    @given(
        st.lists(st.lists(log_records, min_size=1, max_size=5), min_size=1, max_size=3),
        st.integers(0, 2**40),
        st.integers(0, 2**31 - 1),
        st.integers(0, 2**41),
    )
    def check(drawn: list[list[LogRecord]], base_offset: int, leader_epoch: int, timestamp_ms: int) -> None:
        encoded = b""
        for many in drawn:
            encoded += encode_batch(
                many, base_offset=base_offset, partition_leader_epoch=leader_epoch, timestamp_ms=timestamp_ms
            )
        seen = oracle.records(encoded)
        compare(list(batches.read_batches(encoded)), seen.value)
        compare(list(batches.read_batches(seen.encoded)), [as_written(batch) for batch in seen.value])
        # Java begins the timestamps at the first record's; where that is ours, the bytes are the same.
        if all(many[0].timestamp_delta == 0 for many in drawn):
            assert seen.encoded == encoded

    check()


def as_written(batch: dict[str, Any]) -> dict[str, Any]:
    return {**batch, "size": None}


def compare(ours: list[batches.RecordBatch], javas: list[dict[str, Any]]) -> None:
    assert len(ours) == len(javas)
    for batch, other in zip(ours, javas, strict=True):
        header = batch.header
        assert (header.base_offset, header.last_offset) == (other["base_offset"], other["last_offset"])
        assert other["size"] in (None, header.size)
        for name in ("partition_leader_epoch", "compression", "max_timestamp", "producer_id", "producer_epoch"):
            assert getattr(header, name) == other[name], name
        for name in ("base_sequence", "is_transactional", "is_control"):
            assert getattr(header, name) == other[name], name
        assert [
            {
                "offset": header.base_offset + record.offset_delta,
                "timestamp": header.base_timestamp + record.timestamp_delta,
                "key": None if record.key is None else record.key.hex(),
                "value": None if record.value is None else record.value.hex(),
                "headers": [[key, None if value is None else value.hex()] for key, value in record.headers],
            }
            for record in batch.records
        ] == other["records"]


@pytest.mark.parametrize("at", [17, 21, 30, 60])
def test_both_refuse_a_batch_whose_checksum_does_not_agree(oracle: Oracle, at: int) -> None:
    good = encode_batch([LogRecord(value=b"v")], base_offset=0, partition_leader_epoch=0, timestamp_ms=0)
    bad = bytearray(good)
    bad[at] ^= 0x40
    with pytest.raises(JavaError, match="CorruptRecord"):
        oracle.records(bytes(bad))
    with pytest.raises(CodecError):
        read_batch(bytes(bad))


FIRST_WITH_ENDPOINTS: Final = {ApiKey.PRODUCE: 10, ApiKey.FETCH: 16, ApiKey.SHARE_FETCH: 0, ApiKey.SHARE_ACKNOWLEDGE: 0}


@pytest.mark.row("1")
@pytest.mark.parametrize("api_key", FIRST_WITH_ENDPOINTS)
def test_java_reads_a_tail_that_was_made_to_keep_its_length(oracle: Oracle, api_key: ApiKey) -> None:
    ours = "127.0.0.1"
    for version in oracle.versions(api_key):
        if version < FIRST_WITH_ENDPOINTS[api_key]:
            continue
        # Room to fill; none; room that the racks must make; room that endpoints must make.
        for host, rack, least in (
            ("kafka-1.example", "a", 3),
            ("127.0.0.9", None, 3),
            ("a" * 7, "a" * 9, 3),
            ("b", None, 0),
        ):
            endpoints: list[dict[str, Any]] = [
                {"node_id": n, "host": host, "port": 9092, "rack": rack} for n in (1, 2, 3)
            ]
            body = encoder(response_table(api_key), version)({"node_endpoints": endpoints})
            walk = node_endpoints(body, api_key, version, 0)
            tail = body[walk.tail_start :]
            fitted = fit_node_endpoints(
                tail,
                walk_tail(tail, api_key, version, frozenset()),
                [{**endpoint, "host": ours, "port": 19100 + endpoint["node_id"]} for endpoint in endpoints],
            )
            seen = oracle.message("response", api_key, version, body[: walk.tail_start] + fitted)
            assert seen is not None
            named = [(e["nodeId"], e["host"], e["port"]) for e in seen.value.get("nodeEndpoints", ())]
            assert named == [(n, ours, 19100 + n) for n in range(1, len(named) + 1)]
            assert least <= len(named) <= (3 if least else 1)
            assert seen.encoded == body[: walk.tail_start] + fitted


def test_the_oracle_can_refuse(oracle: Oracle) -> None:
    body = encoder(request_table(3), 12)({"topics": []})
    with pytest.raises(JavaError):
        oracle.message("request", 3, 12, body[:-1])
    with pytest.raises(JavaError, match="1 bytes left over"):
        oracle.message("request", 3, 12, body + b"\0")
    assert oracle.message("request", 999, 0, b"") is None
