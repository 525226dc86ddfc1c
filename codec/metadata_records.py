"""The values of metadata records, framed as KRaft does: frame version, type and version of the record, then its body.

    frame version   unsigned varint, 1
    type            unsigned varint, the `type_id` of the table
    version         unsigned varint
    body            as the table says

The records stand in ordinary batches of the metadata log and its snapshots (`codec.records`), without keys. What they
mean is `backend.metadata`'s business. Source: MetadataRecordSerde and the definitions of Kafka's metadata module.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, final

from codec.compiled import decoder, encoder
from codec.errors import CodecError
from codec.log_records import access, nodes, settings, topics, transactions
from codec.primitives import read_unsigned_varint, write_unsigned_varint
from codec.schema import Record

FRAME_VERSION: Final = 1

METADATA_TABLES: Final[Mapping[int, Record]] = {
    table.type_id: table for page in (topics, nodes, access, settings, transactions) for table in page.TABLES
}
"""Every metadata record of Kafka 3.9 to 4.4, by its type."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataRecord:
    """A metadata record, read.

    Attributes:
        table: Which one it is; `table.title` is Kafka's name for it.
        version: The version that it was written in.
        value: Its fields, as `codec.compiled.decoder` returns them.
    """

    table: Record
    version: int
    value: dict[str, Any]


def decode_metadata_record(value: bytes) -> MetadataRecord:
    """Read the value of one record of the metadata log.

    Raises:
        CodecError: It is malformed, or of a type or version that Kafka 4.4 does not know.
    """
    frame_version, at = read_unsigned_varint(value, 0, "frame_version")
    if frame_version != FRAME_VERSION:
        raise CodecError(0, "frame_version", f"{frame_version}; {FRAME_VERSION} is the only one")
    type_id, version_at = read_unsigned_varint(value, at, "type")
    table = METADATA_TABLES.get(type_id)
    if table is None:
        raise CodecError(at, "type", f"no metadata record of type {type_id}")
    version, start = read_unsigned_varint(value, version_at, "version")
    body, end = decoder(table, version)(value, start)
    if end != len(value):
        raise CodecError(end, table.title, f"{len(value) - end} bytes left over")
    return MetadataRecord(table=table, version=version, value=body)


def encode_metadata_record(table: Record, version: int, value: Mapping[str, Any]) -> bytes:
    """The bytes of a record's value, its frame included.

    Raises:
        CodecError: A field does not fit, or the table has no such version.
    """
    body = encoder(table, version)(value)
    start = (FRAME_VERSION, table.type_id, version)
    return b"".join(write_unsigned_varint(number) for number in start) + body
