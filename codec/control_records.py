"""Control records: the key that says which one it is, and the value.

    key     version int16 (0), type int16
    value   version int16, then the fields of the table

In the records of the metadata log the version is the first field of the table itself; the markers that end transactions
have it in front of the table. Control records stand alone in control batches (`codec.records`). Sources:
ControlRecordType, EndTransactionMarker and ControlRecordUtils of Kafka, KIP-595, KIP-630, KIP-853, KIP-98.
"""

import enum
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, final

from codec.compiled import decoder, encoder
from codec.errors import CodecError, Truncated
from codec.log_records import control
from codec.schema import Record

_KEY: Final = struct.Struct(">hh")
_VERSION: Final = struct.Struct(">h")


@final
class ControlType(enum.IntEnum):
    """The types of control records in Kafka 4.4."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


CONTROL_TABLES: Final[Mapping[int, Record]] = {ControlType(table.type_id): table for table in control.TABLES}
"""Their tables."""

_PREFIXED: Final = frozenset({ControlType.ABORT, ControlType.COMMIT})
"""Their tables do not contain the version."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ControlRecord:
    """A control record, read. `value` is as `codec.compiled.decoder` returns it."""

    type: ControlType
    version: int
    value: dict[str, Any]


def control_type_of(key: bytes | None) -> int:
    """The type in a control record's key; it may be one that nobody here knows, which Kafka's readers skip.

    Raises:
        CodecError: There is no key, or it is too short.
    """
    if key is None or len(key) < _KEY.size:
        raise Truncated(0, "control_record.key", f"{_KEY.size} bytes wanted, {len(key or b'')} there")
    version, type_id = _KEY.unpack_from(key)
    if version < 0:
        raise CodecError(0, "control_record.key", f"version {version}")
    return int(type_id)


def decode_control_record(key: bytes | None, value: bytes | None) -> ControlRecord:
    """Read a control record.

    Raises:
        CodecError: It is malformed, or of a type or version that Kafka 4.4 does not know.
    """
    type_id = control_type_of(key)
    table = CONTROL_TABLES.get(type_id)
    if table is None:
        raise CodecError(2, "control_record.type", f"no control record of type {type_id}")
    kind = ControlType(type_id)
    if value is None or len(value) < _VERSION.size:
        raise Truncated(0, f"{table.title}.version", f"{_VERSION.size} bytes wanted, {len(value or b'')} there")
    (version,) = _VERSION.unpack_from(value)
    body, end = decoder(table, version)(value, _VERSION.size if kind in _PREFIXED else 0)
    if end != len(value):
        raise CodecError(end, table.title, f"{len(value) - end} bytes left over")
    return ControlRecord(type=kind, version=version, value=body)


def encode_control_record(kind: ControlType, version: int, value: Mapping[str, Any]) -> tuple[bytes, bytes]:
    """Key and value of a control record; a field `version` in the value is set to `version`.

    Raises:
        CodecError: A field does not fit, or the table has no such version.
    """
    prefix = _VERSION.pack(version) if kind in _PREFIXED else b""
    body = encoder(CONTROL_TABLES[kind], version)({**value, "version": version})
    return _KEY.pack(0, kind), prefix + body
