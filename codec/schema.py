"""What a message is: named fields, each with its type, versions, nullable versions, tag and default.

The tables in `codec.messages` are written with the constructors below so that a page of Python reads like Kafka's own
definition of the message. Nothing here reads or writes a byte: `codec.compiled` turns a table into fast closures and
`codec.reference` into construct objects. The words are those of the README beside Kafka's message definitions.
"""

import enum
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal, Self, final

from codec.api_keys import ApiKey

VERSION_MAX: Final = 0x7FFF
"""`api_version` is an int16; an open range such as `3+` ends here."""


@final
@dataclass(frozen=True, slots=True)
class Versions:
    """An inclusive range of API versions, written as in Kafka's definitions: `3+`, `0-3` or `4`."""

    first: int
    last: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read Kafka's notation.

        Raises:
            ValueError: The text is no such range, or the range is empty.
        """
        first, dash, last = text.partition("-")
        if text.endswith("+"):
            versions = cls(int(text[:-1]), VERSION_MAX)
        else:
            versions = cls(int(first), int(last if dash else first))
        if not 0 <= versions.first <= versions.last <= VERSION_MAX:
            raise ValueError(f"no range of versions: {text}")
        return versions

    def __contains__(self, version: int) -> bool:
        return self.first <= version <= self.last


ALL_VERSIONS: Final = Versions(0, VERSION_MAX)


@final
class Scalar(enum.Enum):
    """A type without parts. `UUID` is 16 raw bytes; `RECORDS` is bytes that nobody here looks into."""

    BOOL = "bool"
    INT8 = "int8"
    INT16 = "int16"
    UINT16 = "uint16"
    INT32 = "int32"
    UINT32 = "uint32"
    INT64 = "int64"
    FLOAT64 = "float64"
    UUID = "uuid"
    STRING = "string"
    BYTES = "bytes"
    RECORDS = "records"


BOOL: Final = Scalar.BOOL
INT8: Final = Scalar.INT8
INT16: Final = Scalar.INT16
UINT16: Final = Scalar.UINT16
INT32: Final = Scalar.INT32
UINT32: Final = Scalar.UINT32
INT64: Final = Scalar.INT64
FLOAT64: Final = Scalar.FLOAT64
UUID: Final = Scalar.UUID
STRING: Final = Scalar.STRING
BYTES: Final = Scalar.BYTES
RECORDS: Final = Scalar.RECORDS


@final
@dataclass(frozen=True, slots=True)
class Struct:
    """Fields in wire order. In flexible versions a section of tagged fields follows them."""

    fields: tuple["Field", ...]

    def untagged(self, version: int) -> Iterator["Field"]:
        """The fields that this version writes one after the other, in wire order."""
        return (f for f in self.fields if version in f.versions and f.tag is None)

    def tagged(self, version: int) -> Iterator["Field"]:
        """The fields that this version may carry in the tagged section, in ascending order of their tags."""
        by_tag = {f.tag: f for f in self.fields if version in f.versions and f.tag is not None}
        return (by_tag[tag] for tag in sorted(by_tag))


@final
@dataclass(frozen=True, slots=True)
class Array:
    """Any number of elements of one type."""

    element: Scalar | Struct


Type = Scalar | Struct | Array
Default = bool | int | float | str | bytes | tuple[()] | None
"""`()` stands for an array without elements, and for a struct whose fields have their own defaults; None for null."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field of a message.

    Attributes:
        name: Kafka's name in snake_case.
        type: What it holds.
        versions: Where it exists; inside a struct, within the struct's own versions.
        nullable: Where it may be null, or None for nowhere.
        tag: Its number in the tagged section, or None for an ordinary field. Tags exist in flexible versions only.
        default: What a decoder reports for an absent tagged field and an encoder writes for a missing key.
    """

    name: str
    type: Type
    versions: Versions
    nullable: Versions | None
    tag: int | None
    default: Default

    def nullable_in(self, version: int) -> bool:
        """Whether null may stand for this field in that version."""
        return self.nullable is not None and version in self.nullable


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Message:
    """A request or a response in all the versions that Kafka 3.9 to 4.4 accept; compared by identity.

    Attributes:
        api_key: Which API.
        direction: Which way it travels.
        versions: Which versions the table describes.
        flexible: In which of them lengths are compact and tagged fields exist, or None for in none.
        body: The fields after the header.
    """

    api_key: ApiKey
    direction: Literal["request", "response"]
    versions: Versions
    flexible: Versions | None
    body: Struct

    def __repr__(self) -> str:
        return f"<table of the {self.api_key.name} {self.direction}>"

    @property
    def title(self) -> str:
        """What errors call it."""
        return f"{self.api_key.name} {self.direction}"

    def is_flexible(self, version: int) -> bool:
        """Whether this version has compact lengths and tagged fields (KIP-482)."""
        return self.flexible is not None and version in self.flexible


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Record:
    """The value of a record in a log, in all the versions that Kafka 3.9 to 4.4 write; compared by identity.

    Attributes:
        type_id: Its number, among the metadata records or among the control records.
        title: Kafka's name for it, as errors show it.
        versions: Which versions the table describes.
        flexible: In which of them lengths are compact and tagged fields exist, or None for in none.
        body: The fields.
    """

    type_id: int
    title: str
    versions: Versions
    flexible: Versions | None
    body: Struct

    def __repr__(self) -> str:
        return f"<table of {self.title}>"

    def is_flexible(self, version: int) -> bool:
        """Whether this version has compact lengths and tagged fields (KIP-482)."""
        return self.flexible is not None and version in self.flexible


Table = Message | Record
"""Whatever the codec reads and writes by a table."""

_ZERO: Final[dict[Scalar, Default]] = {
    Scalar.BOOL: False,
    Scalar.FLOAT64: 0.0,
    Scalar.UUID: bytes(16),
    Scalar.STRING: "",
    Scalar.BYTES: b"",
    Scalar.RECORDS: b"",
}
_UNSET: Final[Any] = object()


def field(
    name: str,
    of: Scalar,
    versions: str = "0+",
    *,
    nullable: str | Literal[True] | None = None,
    tag: int | None = None,
    default: Default = _UNSET,
) -> Field:
    """A field without parts; `nullable=True` means in all its versions."""
    return _field(name, of, versions, nullable, tag, _ZERO.get(of, 0) if default is _UNSET else default)


def array(
    name: str,
    *of: Scalar | Field,
    versions: str = "0+",
    nullable: str | Literal[True] | None = None,
    tag: int | None = None,
    default: tuple[()] | None = (),
) -> Field:
    """An array of one scalar type, or of structs with the given fields."""
    fields = tuple(part for part in of if isinstance(part, Field))
    scalars = tuple(part for part in of if isinstance(part, Scalar))
    match fields, scalars:
        case (), (element,):
            return _field(name, Array(element), versions, nullable, tag, default)
        case (_, *_), ():
            return _field(name, Array(Struct(fields)), versions, nullable, tag, default)
        case _:
            raise ValueError(f"{name}: an array has elements of one type")


def struct(
    name: str,
    *fields: Field,
    versions: str = "0+",
    nullable: str | Literal[True] | None = None,
    tag: int | None = None,
    default: tuple[()] | None = (),
) -> Field:
    """One struct with the given fields."""
    return _field(name, Struct(fields), versions, nullable, tag, default)


def request(api_key: ApiKey, versions: str, *fields: Field, flexible: str | None) -> Message:
    """The table of a request body; `flexible` is the range with compact lengths and tagged fields."""
    return _message(api_key, "request", versions, fields, flexible)


def response(api_key: ApiKey, versions: str, *fields: Field, flexible: str | None) -> Message:
    """The table of a response body; `flexible` is the range with compact lengths and tagged fields."""
    return _message(api_key, "response", versions, fields, flexible)


def record(type_id: int, title: str, versions: str, *fields: Field, flexible: str | None) -> Record:
    """The table of a record; `flexible` is the range with compact lengths and tagged fields."""
    return Record(
        type_id=type_id,
        title=title,
        versions=Versions.parse(versions),
        flexible=None if flexible is None else Versions.parse(flexible),
        body=Struct(fields),
    )


def _field(
    name: str,
    of: Type,
    versions: str,
    nullable: str | Literal[True] | None,
    tag: int | None,
    default: Default,
) -> Field:
    exists = Versions.parse(versions)
    if nullable is True:
        nulls: Versions | None = exists
    else:
        nulls = None if nullable is None else Versions.parse(nullable)
    return Field(name=name, type=of, versions=exists, nullable=nulls, tag=tag, default=default)


def _message(
    api_key: ApiKey,
    direction: Literal["request", "response"],
    versions: str,
    fields: tuple[Field, ...],
    flexible: str | None,
) -> Message:
    return Message(
        api_key=api_key,
        direction=direction,
        versions=Versions.parse(versions),
        flexible=None if flexible is None else Versions.parse(flexible),
        body=Struct(fields),
    )
