"""CreateAcls (30) and DeleteAcls (31): access rules come and go. Errors and messages are Kafka 4.4's."""

from collections.abc import Mapping
from typing import Any

from backend.metadata.acls import (
    ANY,
    OPERATIONS,
    PATTERN_TYPES,
    PERMISSION_TYPES,
    RESOURCE_TYPES,
    AclFilter,
    PatternType,
    StandardAcl,
)
from backend.metadata.authorizer import CLUSTER_NAME
from backend.metadata.errors import ApiError
from backend.metadata.image import Image
from backend.metadata.records import AccessControlEntryRecord, RemoveAccessControlEntryRecord, Uuid
from backend.metadata.writes import Body, Outcome, WriteContext, WriteRequest, error_fields
from codec.error_codes import ErrorCode


def create_acls(request: WriteRequest, image: Image, context: WriteContext) -> Outcome:
    """CreateAcls (30); a rule that is there already is no error, and no record."""
    acls = [_acl(creation) for creation in request.body["creations"]]
    if any(_is_filter(acl) for acl in acls):
        # Kafka fails on these for the whole request, and without a word.
        failed = error_fields(ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, None))
        return Outcome(records=(), response={"throttle_time_ms": 0, "results": [failed] * len(acls)})
    records: dict[StandardAcl, AccessControlEntryRecord] = {}
    results: list[Body] = []
    for acl in acls:
        try:
            _validate(acl)
        except ApiError as error:
            results.append(error_fields(error))
            continue
        if acl not in image.acls.ids and acl not in records:
            records[acl] = acl.to_record(context.new_uuid())
        results.append({"error_code": ErrorCode.NONE.value, "error_message": ""})
    return Outcome(records=tuple(records.values()), response={"throttle_time_ms": 0, "results": results})


def delete_acls(request: WriteRequest, image: Image) -> Outcome:
    """DeleteAcls (31); a rule that two filters mean is reported to both and goes once."""
    doomed: dict[Uuid, RemoveAccessControlEntryRecord] = {}
    results: list[Body] = []
    for wanted in request.body["filters"]:
        acl_filter = filter_of(wanted)
        error = filter_fault(acl_filter)
        found = [] if error is not None else image.acls.matching(acl_filter)
        doomed |= {acl_id: RemoveAccessControlEntryRecord(id=acl_id) for acl_id, _ in found}
        results.append({**error_fields(error), "matching_acls": [_deleted(acl) for _, acl in found]})
    return Outcome(records=tuple(doomed.values()), response={"throttle_time_ms": 0, "filter_results": results})


def filter_of(fields: Mapping[str, Any]) -> AclFilter:
    """The filter that stands in a DescribeAcls or DeleteAcls request; in v0 patterns are literal."""
    return AclFilter(
        resource_type=fields["resource_type_filter"],
        resource_name=fields["resource_name_filter"],
        pattern_type=fields.get("pattern_type_filter", PatternType.LITERAL),
        principal=fields["principal_filter"],
        host=fields["host_filter"],
        operation=fields["operation"],
        permission_type=fields["permission_type"],
    )


def filter_fault(acl_filter: AclFilter) -> ApiError | None:
    """What is wrong with a filter, or None. 0 is; a number that nobody knows matches nothing, which is no fault."""
    if 0 in (acl_filter.resource_type, acl_filter.pattern_type):
        return ApiError(ErrorCode.INVALID_REQUEST, "Unknown patternFilter.")
    if 0 in (acl_filter.operation, acl_filter.permission_type):
        return ApiError(ErrorCode.INVALID_REQUEST, "Unknown entryFilter.")
    return None


def _acl(creation: Mapping[str, Any]) -> StandardAcl:
    return StandardAcl(
        resource_type=creation["resource_type"],
        resource_name=creation["resource_name"],
        pattern_type=creation.get("resource_pattern_type", PatternType.LITERAL),
        principal=creation["principal"],
        host=creation["host"],
        operation=creation["operation"],
        permission_type=creation["permission_type"],
    )


def _is_filter(acl: StandardAcl) -> bool:
    return (
        ANY
        in (
            acl.resource_type,
            acl.pattern_type,
            acl.operation,
            acl.permission_type,
        )
        or acl.pattern_type == PatternType.MATCH
    )


def _validate(acl: StandardAcl) -> None:
    reason = _fault(acl)
    if reason is not None:
        raise ApiError(ErrorCode.INVALID_REQUEST, reason)


def _fault(acl: StandardAcl) -> str | None:
    if not acl.resource_name:
        return "Invalid empty resource name"
    if acl.resource_type == RESOURCE_TYPES.index("CLUSTER") and acl.resource_name != CLUSTER_NAME:
        return f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
    for field, number, names in (
        ("resourceType", acl.resource_type, RESOURCE_TYPES),
        ("patternType", acl.pattern_type, PATTERN_TYPES),
        ("operation", acl.operation, OPERATIONS),
        ("permissionType", acl.permission_type, PERMISSION_TYPES),
    ):
        if not 0 < number < len(names):
            return f"Invalid {field} UNKNOWN"
    if not acl.host:
        return "Host pattern cannot be null or empty"
    if ":" not in acl.principal:
        return (
            f"Could not parse principal from `{acl.principal}` (no colon is present separating the principal type from "
            "the principal name)"
        )
    return None


def _deleted(acl: StandardAcl) -> Body:
    return {
        **error_fields(None),
        "resource_type": acl.resource_type,
        "resource_name": acl.resource_name,
        "pattern_type": acl.pattern_type,
        "principal": acl.principal,
        "host": acl.host,
        "operation": acl.operation,
        "permission_type": acl.permission_type,
    }
