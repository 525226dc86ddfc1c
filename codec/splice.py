"""Rewrites one array of an answer and copies every other byte: brokers, coordinators, the list of API versions.

Used for Metadata, DescribeCluster, FindCoordinator and ApiVersions. What lies before the array is skipped, what lies
behind it is not even looked at, so that tagged fields that are absent, defaults that were written out and whatever a
later Kafka adds stay as the broker sent them. An answer that needs no change is returned as the same object.

The functions know no port: the caller's `rewrite` gets the decoded elements and returns those to send.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, final

from codec.api_keys import ApiKey
from codec.compiled import check_version
from codec.decoding import Decode, field_decoder
from codec.encoding import Encode, field_encoder
from codec.registry import response_table
from codec.schema import Field, Message
from codec.skipping import Program, skip, skip_program

Rewrite = Callable[[list[dict[str, Any]]], list[dict[str, Any]]]
"""Gets decoded elements, returns those to send. It may change them in place, drop some or add others."""

CONTROLLERS: Final = 2
"""DescribeCluster's `endpoint_type` for answers that list controllers in place of brokers."""


def replace_brokers(payload: bytes, api_key: int, api_version: int, body_offset: int, rewrite: Rewrite) -> bytes:
    """Rewrite the brokers of a Metadata or DescribeCluster answer.

    Metadata's elements have `node_id host port rack`, DescribeCluster's `broker_id host port rack is_fenced`, each in
    the versions that know them. A DescribeCluster answer that lists controllers is returned as it is.

    Raises:
        CodecError: The bytes before the array or the array itself are malformed, or the version is unknown.
    """
    if api_key == ApiKey.DESCRIBE_CLUSTER and _lists_controllers(payload, api_version, body_offset):
        return payload
    return _replace(payload, body_offset, _array_plan(api_key, api_version, "brokers"), rewrite)


def replace_coordinators(payload: bytes, api_version: int, body_offset: int, rewrite: Rewrite) -> bytes:
    """Rewrite the coordinators of a FindCoordinator answer.

    The elements have `node_id host port`, from v4 on also `key error_code error_message`; up to v3 there is exactly
    one, which `rewrite` must return. Node id -1 means that no coordinator is known.

    Raises:
        CodecError: The bytes up to the last coordinator are malformed, or the version is unknown.
    """
    if api_version >= 4:
        plan = _array_plan(ApiKey.FIND_COORDINATOR, api_version, "coordinators")
    else:
        plan = _flat_coordinator_plan(api_version)
    return _replace(payload, body_offset, plan, rewrite)


def replace_api_keys(payload: bytes, api_version: int, body_offset: int, rewrite: Rewrite) -> bytes:
    """Rewrite the API versions of an ApiVersions answer; the elements have `api_key min_version max_version`.

    A broker that does not know the version asked for answers with the body of v0 and error 35: then pass 0.

    Raises:
        CodecError: The bytes up to the end of the array are malformed, or the version is unknown.
    """
    return _replace(payload, body_offset, _array_plan(ApiKey.API_VERSIONS, api_version, "api_keys"), rewrite)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """How to find, read and write the part that is replaced."""

    name: str
    before: Program
    decode: Decode
    encode: Encode


def _replace(payload: bytes, body_offset: int, plan: _Plan, rewrite: Rewrite) -> bytes:
    start = skip(payload, body_offset, plan.before, set(), plan.name)
    elements, end = plan.decode(payload, start)
    out = bytearray()
    plan.encode(rewrite(elements), out)
    if out == payload[start:end]:
        return payload
    return b"".join((payload[:start], out, payload[end:]))


@cache
def _array_plan(api_key: int, api_version: int, name: str) -> _Plan:
    table = response_table(api_key)
    check_version(table, api_version)
    flexible = table.is_flexible(api_version)
    before, field = _cut(table, name)
    return _Plan(
        name=f"{table.api_key.name} response up to {name}",
        before=skip_program(before, api_version, flexible, tags=False),
        decode=field_decoder(field, api_version, flexible, ""),
        encode=field_encoder(field, api_version, flexible, ""),
    )


@cache
def _flat_coordinator_plan(api_version: int) -> _Plan:
    """Up to v3 the coordinator is three fields of the body itself: they are read as a list of one struct."""
    table = response_table(ApiKey.FIND_COORDINATOR)
    check_version(table, api_version)
    flexible = table.is_flexible(api_version)
    before, node_id = _cut(table, "node_id")
    fields = (node_id, *(field for field in table.body.fields if field.name in ("host", "port")))
    readers = tuple((field.name, field_decoder(field, api_version, flexible, "")) for field in fields)
    writers = tuple((field.name, field_encoder(field, api_version, flexible, "")) for field in fields)

    def decode(buffer: bytes, offset: int) -> tuple[list[dict[str, Any]], int]:
        coordinator: dict[str, Any] = {}
        for name, read in readers:
            coordinator[name], offset = read(buffer, offset)
        return [coordinator], offset

    def encode(elements: list[dict[str, Any]], out: bytearray) -> None:
        (coordinator,) = elements
        for name, write in writers:
            write(coordinator[name], out)

    return _Plan(
        name="FIND_COORDINATOR response up to port",
        before=skip_program(before, api_version, flexible, tags=False),
        decode=decode,
        encode=encode,
    )


@cache
def _before_endpoint_type(api_version: int) -> Program:
    table = response_table(ApiKey.DESCRIBE_CLUSTER)
    check_version(table, api_version)
    before, _ = _cut(table, "endpoint_type")
    return skip_program(before, api_version, table.is_flexible(api_version), tags=False)


def _lists_controllers(payload: bytes, api_version: int, body_offset: int) -> bool:
    if api_version == 0:
        return False
    at = skip(payload, body_offset, _before_endpoint_type(api_version), set(), "endpoint_type")
    return payload[at : at + 1] == bytes((CONTROLLERS,))


def _cut(table: Message, name: str) -> tuple[tuple[Field, ...], Field]:
    """The fields before one, and that one."""
    fields = table.body.fields
    at = next(index for index, field in enumerate(fields) if field.name == name)
    return fields[:at], fields[at]
