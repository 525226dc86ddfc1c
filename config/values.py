"""The kinds of value a configuration holds: addresses, port ranges, bounded numbers, flags, text, files.

Each kind says in a few words what it accepts; a refusal never repeats the value. Numbers and flags may also come as
text, because `${NAME}` always yields text. Knows pydantic, and no key.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Self, TypeAlias

from pydantic import (
    BeforeValidator,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    PlainSerializer,
    PlainValidator,
    WithJsonSchema,
)
from pydantic_core import CoreSchema, core_schema

PORT_MAX = 65535
HOST_LENGTH_MAX = 253
TEXT_LENGTH_MAX = 4096
_PORTS_FORM = "must be FIRST-LAST, for example 19101-19199"
_HOST_NAME = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?\.?")
_PORT = re.compile(r"[0-9]{1,5}")
_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,19}")


@dataclass(frozen=True, slots=True, order=True)
class HostPort:
    """A TCP address: host name or IP literal (IPv6 without brackets), and a port from 1 to 65535."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """`host:port` or `[v6]:port`.

        Raises:
            ValueError: with the reason in words for users.
        """
        if "://" in text:
            raise ValueError("must be HOST:PORT, without a scheme")
        host, colon, port = text.rpartition(":")
        if not colon or not host:
            raise ValueError("must be HOST:PORT")
        if host.startswith("[") and host.endswith("]"):
            host = host[1:-1]
            if not _is_ip(host, version=6):
                raise ValueError("must have an IPv6 address between the brackets")
        elif ":" in host:
            raise ValueError("must have the IPv6 address in brackets: [ADDRESS]:PORT")
        return cls(parse_host(host), parse_port(port))

    @property
    def is_wildcard(self) -> bool:
        """Whether the host means every interface of the machine."""
        return _is_wildcard(self.host)

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the host."""
        return self.host == "localhost" or (_is_ip(self.host) and ipaddress.ip_address(self.host).is_loopback)

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class PortRange:
    """Ports `first` to `last`, both included, ascending, within 1 to 65535."""

    first: int
    last: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """`FIRST-LAST`.

        Raises:
            ValueError: with the reason in words for users.
        """
        first_text, dash, last_text = text.partition("-")
        if not dash:
            raise ValueError(_PORTS_FORM)
        first, last = parse_port(first_text.strip()), parse_port(last_text.strip())
        if first > last:
            raise ValueError("must be ascending: FIRST-LAST with FIRST not above LAST")
        return cls(first, last)

    def __len__(self) -> int:
        return self.last - self.first + 1

    def __contains__(self, port: int) -> bool:
        return self.first <= port <= self.last

    def overlaps(self, other: PortRange) -> bool:
        """Whether the two ranges share a port."""
        return self.first <= other.last and other.first <= self.last

    def __str__(self) -> str:
        return f"{self.first}-{self.last}"


def parse_port(text: str) -> int:
    """A port from 1 to 65535; raises ValueError with the reason."""
    if not _PORT.fullmatch(text):
        raise ValueError("must have a port from 1 to 65535")
    if not 1 <= (port := int(text)) <= PORT_MAX:
        raise ValueError("port must be between 1 and 65535")
    return port


def parse_host(text: str) -> str:
    """A host name or an IP literal without brackets; raises ValueError with the reason."""
    if _is_ip(text):
        return text
    if len(text) > HOST_LENGTH_MAX or not _HOST_NAME.fullmatch(text) or ".." in text:
        raise ValueError("must have a host name or an IP address")
    return text


def parse_reachable_host(text: str) -> str:
    """A host that clients can connect to, so no wildcard; raises ValueError with the reason."""
    host = parse_host(text.removeprefix("[").removesuffix("]"))
    if _is_wildcard(host):
        raise ValueError("must be a host that clients can connect to, not a wildcard address")
    return host


def may_collide(one: str, other: str) -> bool:
    """Whether sockets bound to these two hosts may claim the same port: all but two different IP literals may."""
    if not (_is_ip(one) and _is_ip(other)) or _is_wildcard(one) or _is_wildcard(other):
        return True
    return ipaddress.ip_address(one) == ipaddress.ip_address(other)


def _is_ip(text: str, version: int | None = None) -> bool:
    try:
        return version in (None, ipaddress.ip_address(text).version)
    except ValueError:
        return False


def _is_wildcard(host: str) -> bool:
    return _is_ip(host) and ipaddress.ip_address(host).is_unspecified


@dataclass(frozen=True, slots=True)
class Whole:
    """Marks a whole number from `minimum` to `maximum`, both included; digits as text are accepted."""

    minimum: int
    maximum: int

    def check(self, value: object) -> int:
        """The number; raises ValueError with the reason."""
        if isinstance(value, str) and _WHOLE_NUMBER.fullmatch(value):
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool):
            raise ValueError("must be a whole number")
        if not self.minimum <= value <= self.maximum:
            raise ValueError(f"must be between {self.minimum} and {self.maximum}")
        return value

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.check)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"type": "integer", "minimum": self.minimum, "maximum": self.maximum}


@dataclass(frozen=True, slots=True)
class Entries:
    """Marks a list of `minimum` to `maximum` entries, counted before any of them is read."""

    minimum: int
    maximum: int

    def check(self, value: object) -> object:
        """`value` as it came; raises ValueError for a list that is too short or too long."""
        if isinstance(value, list | tuple):
            if len(value) < self.minimum:
                raise ValueError("must have at least one entry")
            if len(value) > self.maximum:
                raise ValueError(f"must have at most {self.maximum} entries")
        return value

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {**handler(schema), "minItems": self.minimum, "maxItems": self.maximum}


def _split_at_commas(value: object) -> object:
    if isinstance(value, str):
        return [part.strip() for part in value.split(",")]
    return value


SPLIT_AT_COMMAS = BeforeValidator(_split_at_commas)
"""Lets a list of addresses be one text with commas, the form that `${BOOTSTRAP_SERVERS}` usually has."""


def _split_at_semicolons(value: object) -> object:
    if isinstance(value, str):
        return [part.strip() for part in value.split(";") if part.strip()]
    return value


SPLIT_AT_SEMICOLONS = BeforeValidator(_split_at_semicolons)
"""Lets a list of principals be one text with semicolons, as Kafka's `super.users` is: names may hold commas."""


def _principal(value: object) -> str:
    text = _text(value)
    principal_type, colon, name = text.partition(":")
    if not (principal_type and colon and name):
        raise ValueError("must be TYPE:NAME, for example User:admin")
    return text


def _text(value: object) -> str:
    if isinstance(value, int):
        raise ValueError("must be text; put it in quotes")
    if value is None:
        raise ValueError("must not be empty")
    if not isinstance(value, str):
        raise ValueError("must be text")
    if not value:
        raise ValueError("must not be empty")
    if len(value) > TEXT_LENGTH_MAX:
        raise ValueError(f"must be at most {TEXT_LENGTH_MAX} characters")
    if not value.isprintable():
        raise ValueError("must not contain control characters")
    return value


def _flag(value: object) -> bool:
    match value:
        case True | "true":
            return True
        case False | "false":
            return False
        case _:
            raise ValueError("must be true or false")


def _address(value: object) -> HostPort:
    if isinstance(value, int):
        raise ValueError("must be HOST:PORT")
    return value if isinstance(value, HostPort) else HostPort.parse(_text(value))


def _ports(value: object) -> PortRange:
    if isinstance(value, int):
        raise ValueError(_PORTS_FORM)
    return value if isinstance(value, PortRange) else PortRange.parse(_text(value))


def _file(value: object) -> Path:
    return value if isinstance(value, Path) else Path(_text(value))


def _reachable_host(value: object) -> str:
    return parse_reachable_host(_text(value))


Text: TypeAlias = Annotated[str, PlainValidator(_text), WithJsonSchema({"type": "string", "minLength": 1})]
Principal: TypeAlias = Annotated[
    str, PlainValidator(_principal), WithJsonSchema({"type": "string", "pattern": "^[^:]+:.+$"})
]
Flag: TypeAlias = Annotated[bool, PlainValidator(_flag), WithJsonSchema({"type": "boolean"})]
File: TypeAlias = Annotated[
    Path,
    PlainValidator(_file),
    PlainSerializer(str),
    WithJsonSchema({"type": "string", "minLength": 1}),
]
ReachableHost: TypeAlias = Annotated[
    str, PlainValidator(_reachable_host), WithJsonSchema({"type": "string", "minLength": 1})
]
Address: TypeAlias = Annotated[
    HostPort,
    PlainValidator(_address),
    PlainSerializer(str),
    WithJsonSchema({"type": "string", "pattern": r"^.+:.+$|\$\{"}),
]
Ports: TypeAlias = Annotated[
    PortRange,
    PlainValidator(_ports),
    PlainSerializer(str),
    WithJsonSchema({"type": "string", "pattern": r"^.+-.+$|\$\{"}),
]
