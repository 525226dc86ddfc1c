"""Records of the metadata log to the bytes of their values, and back (Kafka's MetadataRecordSerde).

A record's class has the name and the fields of its table in `codec.metadata_records`, so one pair of functions serves
all. Records are written in the newest version of their table, which Kafka 4.4 reads; those that older versions wrote
are read. Sits beside `records`; knows no batch and no offset.
"""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from typing import Any, Final, NamedTuple, get_args, get_type_hints

from backend.metadata.errors import ReplayError
from backend.metadata.records import Record
from codec.compiled import encoder
from codec.metadata_records import FRAME_VERSION, METADATA_TABLES, decode_metadata_record
from codec.primitives import write_unsigned_varint
from codec.schema import Record as Table

Body = Mapping[str, Any]


def encode_record(record: Record) -> bytes:
    """The value of a record of the log.

    Raises:
        CodecError: A field does not fit in its type.
    """
    form = _FORMS[type(record).__name__]
    return form.prefix + form.encode({name: _plain(getattr(record, name)) for name in form.names})


def decode_record(value: bytes) -> Record:
    """The record that stands in a value of the log.

    Raises:
        CodecError: The value is malformed.
        ReplayError: It is a record of Kafka's that this backend does not keep.
    """
    read = decode_metadata_record(value)
    form = _FORMS.get(read.table.title)
    if form is None:
        raise ReplayError(f"{read.table.title} is not among the records that this backend keeps")
    return form.build(read.value)


class _Form(NamedTuple):
    """How one kind of record is written and read."""

    prefix: bytes
    encode: Callable[[Body], bytes]
    names: tuple[str, ...]
    build: Callable[[Body], Record]


def _form(kind: type[Any], table: Table) -> _Form:
    version = table.versions.last
    prefix = b"".join(write_unsigned_varint(number) for number in (FRAME_VERSION, table.type_id, version))
    names = tuple(field.name for field in fields(kind))
    return _Form(prefix, encoder(table, version), names, _builder(kind))


def _plain(value: Any) -> Any:
    """Parts that are records of their own as the mappings that the codec takes."""
    if type(value) is tuple and value and hasattr(value[0], "__dataclass_fields__"):
        return [{field.name: getattr(part, field.name) for field in fields(part)} for part in value]
    return value


def _builder(kind: type[Any]) -> Callable[[Body], Any]:
    """From the fields that a table has read to a value of `kind`; what the version lacks takes its default."""
    hints = get_type_hints(kind)
    readers: list[tuple[str, Callable[[Any], Any] | None]] = [
        (field.name, _reader(hints[field.name])) for field in fields(kind)
    ]
    required = {field.name for field in fields(kind) if field.default is MISSING and field.default_factory is MISSING}

    def build(body: Body) -> Any:
        given = {
            name: body[name] if reader is None or body[name] is None else reader(body[name])
            for name, reader in readers
            if name in body or name in required
        }
        return kind(**given)

    return build


def _reader(hint: Any) -> Callable[[Any], Any] | None:
    """What makes an array of the codec a tuple of `hint`; None where the value is taken as it is."""
    for part in (hint, *get_args(hint)):
        if getattr(part, "__origin__", None) is tuple:
            (element, _) = get_args(part)
            if hasattr(element, "__dataclass_fields__"):
                build = _builder(element)
                return lambda values: tuple(build(value) for value in values)
            return tuple
    return None


_TABLES: Final = {table.title: table for table in METADATA_TABLES.values()}
_FORMS: Final[Mapping[str, _Form]] = {kind.__name__: _form(kind, _TABLES[kind.__name__]) for kind in get_args(Record)}
