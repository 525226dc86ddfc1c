"""Inputs that nobody meant: valid bytes of every kind that the codec reads, damaged by a seeded mutator.

A `Target` is one function that reads bytes from strangers, and valid inputs for it. `Fuzz` draws a target and one of
its inputs, and damages it in one to four places: bits, bytes, lengths that matter, cuts, insertions, pieces of others.
Nothing but `CodecError` may come out, and the error must say where: an offset within the input and a field.
"""

import random
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, final

from codec.api_keys import ApiKey
from codec.batches import encode_batch, encode_control_batch, read_batch, read_batch_header, read_batches
from codec.checksum import crc32c
from codec.chunked_walk import ChunkedWalk
from codec.compiled import decoder, encoder
from codec.control_records import CONTROL_TABLES, ControlRecord, ControlType, decode_control_record
from codec.errors import CodecError
from codec.frames import FrameReader, frame
from codec.headers import (
    RequestHeader,
    client_id_of,
    encode_request_header,
    read_request_header,
    read_response_header,
    request_body_offset,
    response_body_offset,
)
from codec.metadata_records import decode_metadata_record, encode_metadata_record
from codec.records import LogRecord
from codec.schema import Array, Field, Record, Scalar, Struct, Table
from codec.splice import replace_api_keys, replace_brokers, replace_coordinators
from codec.walk import WALKED, node_endpoints, replace_node_endpoints
from tests.support.message_values import every_record, every_table

_EDGES: Final = """
    00 01 02 7f 80 ff 0000 0001 7fff 8000 ffff 00000000 00000001 7fffffff 80000000 ffffffff fffffffe
    8000 8001 ff7f ffffffff0f ffffffff07 ffffffffff01 8080808000 ffffffffffffffff 7fffffffffffffff
"""
BOUNDARIES: Final = tuple(map(bytes.fromhex, _EDGES.split()))
"""Lengths and numbers at the edges of their types, varints among them."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One reader and valid inputs for it."""

    name: str
    read: Callable[[bytes], object]
    inputs: tuple[bytes, ...]


@final
class Fuzz:
    """A sequence of damaged inputs, the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._targets = targets(self._random)

    def run(self, count: int) -> Iterator[tuple[Target, bytes, BaseException]]:
        """Read `count` damaged inputs; yields those that let anything escape that is not a good `CodecError`."""
        choice = self._random.choice
        for _ in range(count):
            target = choice(self._targets)
            damaged = self._damage(choice(target.inputs))
            fault = fault_of(target, damaged)
            if fault is not None:
                yield target, damaged, fault

    def _damage(self, valid: bytes) -> bytes:
        chance = self._random
        data = bytearray(valid)
        for _ in range(chance.choice((1, 1, 1, 2, 2, 3, 4))):
            at = int(chance.random() * (len(data) + 1))
            match int(chance.random() * 8):
                case 0:
                    data[at : at + 1] = bytes((int(chance.random() * 256),))
                case 1 if at < len(data):
                    data[at] ^= 1 << int(chance.random() * 8)
                case 2:
                    data[at : at + chance.choice((0, 1, 2, 4, 8))] = chance.choice(BOUNDARIES)
                case 3:
                    del data[at:]
                case 4:
                    del data[at : at + int(chance.random() * 9)]
                case 5:
                    data[at:at] = chance.randbytes(int(chance.random() * 9))
                case 6:
                    data[at:at] = data[at : at + int(chance.random() * 30)] * 2
                case _:
                    other = chance.choice(chance.choice(self._targets).inputs)
                    start = int(chance.random() * (len(other) + 1))
                    data[at : at + 8] = other[start : start + 16]
        return bytes(data)


def fault_of(target: Target, data: bytes) -> BaseException | None:
    """What the reader let escape, or an `AssertionError` for an error without a place."""
    try:
        target.read(data)
    except CodecError as error:
        if 0 <= error.offset <= len(data) and error.field and error.reason:
            return None
        return AssertionError(f"an error without a place: {error!r}")
    except Exception as error:  # noqa: BLE001 whatever it is, it is the finding
        return error
    return None


def targets_by_name() -> dict[str, Target]:
    """All targets."""
    return {target.name: target for target in targets(random.Random(0))}


def targets(chance: random.Random) -> list[Target]:
    """All readers of bytes from strangers."""
    return [
        *(_body(table, version, chance) for table, version in (*every_table(), *every_record())),
        *_answers(chance),
        *_headers(),
        *_logs(chance),
        Target(name="frames", read=_frames, inputs=(frame(b"abc") + frame(b""), frame(bytes(90)))),
    ]


def _body(table: Table, version: int, chance: random.Random) -> Target:
    encode = encoder(table, version)
    inputs = tuple(encode(_value(table.body, version, table.is_flexible(version), chance)) for _ in range(3))
    return Target(
        name=f"{table.title} v{version}",
        read=lambda data: decoder(table, version)(data, 0),
        inputs=(encode({}), *inputs),
    )


def _answers(chance: random.Random) -> Iterator[Target]:
    for table, version in every_table():
        if table.direction != "response":
            continue
        key, name = table.api_key, f"{table.title} v{version}"
        inputs = tuple(
            encoder(table, version)(_value(table.body, version, table.is_flexible(version), chance)) for _ in range(3)
        )
        if key in WALKED:
            yield Target(name=f"walk of {name}", read=partial(_walk, key, version), inputs=inputs)
            start = b"\0\0\0\7" + (b"\0" if table.is_flexible(version) else b"")
            chunked = tuple(start + body for body in inputs)
            yield Target(name=f"walk of {name} in chunks", read=partial(_chunks, key, version), inputs=chunked)
        splice = _splice(key, version)
        if splice is not None:
            yield Target(name=f"splice of {name}", read=splice, inputs=inputs)


def _splice(key: int, version: int) -> Callable[[bytes], object] | None:
    match key:
        case ApiKey.METADATA | ApiKey.DESCRIBE_CLUSTER:
            return lambda data: replace_brokers(data, key, version, 0, _as_they_are)
        case ApiKey.FIND_COORDINATOR:
            return lambda data: replace_coordinators(data, version, 0, _as_they_are)
        case ApiKey.API_VERSIONS:
            return lambda data: replace_api_keys(data, version, 0, _as_they_are)
        case _:
            return None


def _as_they_are(elements: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return elements


def _walk(key: int, version: int, data: bytes) -> None:
    found = node_endpoints(data, key, version, 0)
    replace_node_endpoints(data, found, found.endpoints)


def _chunks(key: int, version: int, data: bytes) -> None:
    walk, tail = ChunkedWalk(key, version), b""
    for start in range(0, len(data), 7):
        chunk = data[start : start + 7]
        tail += chunk[walk.feed(chunk) :]
    walk.finish(tail)


def _headers() -> Iterator[Target]:
    requests = tuple(
        encode_request_header(
            RequestHeader(api_key=3, api_version=version, correlation_id=7, client_id=client, unknown_tags=tags)
        )
        for version in (1, 12)
        for client in ("c", None)
        for tags in ({}, {5: b"x"})
    )
    answers = (b"\0\0\0\7\0", bytes.fromhex("00000007 02 00 0a 02 61 0000000000000005 00 01 00"))
    for read in (read_request_header, request_body_offset, client_id_of):
        yield Target(name=read.__name__, read=read, inputs=requests)
    yield Target(name="read_response_header", read=lambda data: read_response_header(data, 3, 12), inputs=answers)
    yield Target(name="response_body_offset", read=lambda data: response_body_offset(data, 3, 12), inputs=answers)


def _logs(chance: random.Random) -> Iterator[Target]:
    records = (LogRecord(key=b"k", value=b"value", headers=(("h", b"1"), ("i", None))), LogRecord(value=b"v" * 200))
    data = encode_batch(records, base_offset=5, partition_leader_epoch=2, timestamp_ms=1000)
    change = ControlRecord(
        type=ControlType.LEADER_CHANGE, version=0, value={"leader_id": 1, "voters": [], "granting_voters": []}
    )
    control = encode_control_batch([change], base_offset=0, partition_leader_epoch=1, timestamp_ms=0)
    yield Target(name="batch", read=read_batch, inputs=(data, control))
    yield Target(name="batch header", read=read_batch_header, inputs=(data, control))
    yield Target(name="batch with a right checksum", read=_checksummed, inputs=(data, control))
    yield Target(name="batches", read=lambda data: list(read_batches(data, partial=True)), inputs=(data + control,))
    metadata = tuple(
        encode_metadata_record(table, version, _value(table.body, version, table.is_flexible(version), chance))
        for table, version in every_record()
        if isinstance(table, Record) and table not in CONTROL_TABLES.values()
    )
    yield Target(name="metadata record", read=decode_metadata_record, inputs=metadata)
    for type_id, table in CONTROL_TABLES.items():
        key = struct.pack(">hh", 0, type_id)
        inputs = (b"\0\0" + encoder(table, 0)({}), encoder(table, 0)({}))
        yield Target(
            name=f"control record {ControlType(type_id).name}",
            read=partial(decode_control_record, key),
            inputs=inputs,
        )


def _checksummed(data: bytes) -> None:
    if len(data) >= 21:
        data = data[:17] + struct.pack(">I", crc32c(data[21:])) + data[21:]
    read_batch(data)


def _frames(data: bytes) -> None:
    for _ in FrameReader(1000).feed(data):
        pass


def _value(of: Struct, version: int, flexible: bool, chance: random.Random) -> dict[str, Any]:
    value = {f.name: _part(f, version, flexible, chance) for f in of.fields if version in f.versions}
    return value | ({"unknown_tags": {200: b"x"}} if flexible and chance.random() < 0.3 else {})


def _part(field: Field, version: int, flexible: bool, chance: random.Random) -> Any:
    if field.nullable_in(version) and chance.random() < 0.3:
        return None
    match field.type:
        case Array(element=Struct() as element):
            return [_value(element, version, flexible, chance) for _ in range(int(chance.random() * 3))]
        case Array(element=element):
            return [_scalar(element, chance) for _ in range(int(chance.random() * 3))]
        case Struct():
            return _value(field.type, version, flexible, chance)
        case _:
            return _scalar(field.type, chance)


def _scalar(of: Any, chance: random.Random) -> Any:
    match of:
        case Scalar.STRING:
            return chance.choice(("", "a", "topic-1", "é"))
        case Scalar.BYTES | Scalar.RECORDS:
            return chance.choice((b"", b"bytes", bytes(140)))
        case Scalar.UUID:
            return chance.randbytes(16)
        case Scalar.FLOAT64:
            return 0.5
        case _:
            return int(chance.random() * 3) % 2
