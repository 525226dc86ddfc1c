"""DescribeClientQuotas (48): the quotas of the entities that a filter means. Errors and messages are Kafka 4.4's."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from backend.metadata.errors import ApiError
from backend.metadata.quotas import CLIENT_ID, IP, USER, QuotaEntity
from backend.metadata.reader import Reader
from backend.metadata.writes import Body
from codec.error_codes import ErrorCode

EXACT: Final = 0
DEFAULT: Final = 1
SPECIFIED: Final = 2


def describe_client_quotas(request: Mapping[str, Any], reader: Reader) -> Body:
    """DescribeClientQuotas (48); `strict` leaves out the entities with more parts than the filter."""
    try:
        exact, any_name = _parsed(request["components"])
    except ApiError as error:
        return {
            "throttle_time_ms": 0,
            "error_code": error.code.value,
            "error_message": error.message,
            "entries": None,
        }
    strict: bool = request["strict"]
    entities = reader.image.client_quotas.entities
    found = [entity for entity in entities if _matches(dict(entity), exact, any_name, strict)]
    entries = [
        {
            "entity": [{"entity_type": entity_type, "entity_name": name} for entity_type, name in entity],
            "values": [{"key": key, "value": value} for key, value in sorted(entities[entity].items())],
        }
        for entity in sorted(found, key=_order)
    ]
    return {"throttle_time_ms": 0, "error_code": ErrorCode.NONE.value, "error_message": "", "entries": entries}


def _parsed(components: Iterable[Mapping[str, Any]]) -> tuple[dict[str, str | None], set[str]]:
    """The parts that must have a name, None being the default, and those that may have any."""
    exact: dict[str, str | None] = {}
    any_name: set[str] = set()
    for component in components:
        entity_type, match_type, match = component["entity_type"], component["match_type"], component["match"]
        if not entity_type:
            raise ApiError(ErrorCode.INVALID_REQUEST, "Invalid empty entity type.")
        if entity_type in exact or entity_type in any_name:
            raise ApiError(
                ErrorCode.INVALID_REQUEST, f"Entity type {entity_type} cannot appear more than once in the filter."
            )
        if entity_type not in (USER, CLIENT_ID, IP):
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {entity_type}")
        if match_type == EXACT and match is None:
            raise ApiError(
                ErrorCode.INVALID_REQUEST, "Request specified MATCH_TYPE_EXACT, but set match string to null."
            )
        if match_type in _WITHOUT_NAME and match is not None:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                f"Request specified {_WITHOUT_NAME[match_type]}, but also specified a match string.",
            )
        if match_type == SPECIFIED:
            any_name.add(entity_type)
        elif match_type in (EXACT, DEFAULT):
            exact[entity_type] = match
        else:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"Unknown match type {match_type}")
    types = exact.keys() | any_name
    if IP in types and len(types) > 1:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            "Invalid entity filter component combination. IP filter component should not be used with user or clientId "
            "filter component.",
        )
    return exact, any_name


_WITHOUT_NAME: Final = {DEFAULT: "MATCH_TYPE_DEFAULT", SPECIFIED: "MATCH_TYPE_SPECIFIED"}


def _matches(
    entity: Mapping[str, str | None], exact: Mapping[str, str | None], any_name: set[str], strict: bool
) -> bool:
    if strict and len(entity) != len(exact) + len(any_name):
        return False
    return any_name <= entity.keys() and all(kind in entity and entity[kind] == name for kind, name in exact.items())


def _order(entity: QuotaEntity) -> list[tuple[str, bool, str]]:
    return [(entity_type, name is not None, name or "") for entity_type, name in entity]
