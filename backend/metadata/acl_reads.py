"""DescribeAcls (29): the rules that a broker's authorizer acts by, which may be older than what its image shows."""

from collections.abc import Mapping
from itertools import groupby
from typing import Any

from backend.metadata.acl_writes import filter_fault, filter_of
from backend.metadata.acls import StandardAcl
from backend.metadata.reader import Reader
from backend.metadata.writes import Body
from codec.error_codes import ErrorCode


def describe_acls(request: Mapping[str, Any], reader: Reader) -> Body:
    """DescribeAcls (29): the rules that a filter means, by resource."""
    acl_filter = filter_of(request)
    error = filter_fault(acl_filter)
    if error is not None:
        return {
            "throttle_time_ms": 0,
            "error_code": error.code.value,
            "error_message": error.message,
            "resources": [],
        }
    found = (acl for _, acl in reader.acting.acls.matching(acl_filter))
    resources = [
        {
            "resource_type": resource_type,
            "resource_name": name,
            "pattern_type": pattern_type,
            "acls": [_rule(acl) for acl in acls],
        }
        for (resource_type, name, pattern_type), acls in groupby(found, key=_resource)
    ]
    return {
        "throttle_time_ms": 0,
        "error_code": ErrorCode.NONE.value,
        "error_message": "",
        "resources": resources,
    }


def _resource(acl: StandardAcl) -> tuple[int, str, int]:
    return acl.resource_type, acl.resource_name, acl.pattern_type


def _rule(acl: StandardAcl) -> Body:
    return {
        "principal": acl.principal,
        "host": acl.host,
        "operation": acl.operation,
        "permission_type": acl.permission_type,
    }
