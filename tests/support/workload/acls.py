"""ACLs on topic names: creating, deleting, and judging whether one is there. Pure."""

from collections.abc import Sequence
from typing import Any

from kio.schema.create_acls import v3 as create_acls
from kio.schema.create_acls.v3 import request as create_acls_request
from kio.schema.delete_acls import v3 as delete_acls
from kio.schema.delete_acls.v3 import request as delete_acls_request
from kio.schema.describe_acls import v3 as describe_acls
from kio.schema.errors import ErrorCode
from kio.static.primitive import i8

from tests.support.workload.exchange import Judgement, Read, Write, failed, fresh_if

TOPIC, LITERAL, ANY, ALLOW, READ = i8(2), i8(3), i8(1), i8(3), i8(3)


def write_acls(names: Sequence[str]) -> Write[Any]:
    """Let bob read topics of these names."""
    creations = tuple(
        create_acls_request.AclCreation(
            resource_type=TOPIC,
            resource_name=name,
            principal="User:bob",
            host="*",
            operation=READ,
            permission_type=ALLOW,
        )
        for name in names
    )
    return Write(
        request=create_acls.CreateAclsRequest(creations=creations),
        response_type=create_acls.CreateAclsResponse,
        errors=lambda answer: [each.error_code for each in answer.results],
    )


def read_acl(name: str, *, present: bool) -> Read[Any]:
    """DescribeAcls of one topic name: fresh when it has an ACL, or has none."""

    def judge(answer: describe_acls.DescribeAclsResponse) -> Judgement:
        if answer.error_code is not ErrorCode.none:
            return failed(answer.error_code)
        return fresh_if(present is any(resource.acls for resource in answer.resources))

    return Read(
        request=describe_acls.DescribeAclsRequest(
            resource_type_filter=TOPIC,
            resource_name_filter=name,
            pattern_type_filter=LITERAL,
            principal_filter=None,
            host_filter=None,
            operation=ANY,
            permission_type=ANY,
        ),
        response_type=describe_acls.DescribeAclsResponse,
        judge=judge,
    )


def erase_acls(names: Sequence[str]) -> Write[Any]:
    """Delete all ACLs of topics of these names."""
    filters = tuple(
        delete_acls_request.DeleteAclsFilter(
            resource_type_filter=TOPIC,
            resource_name_filter=name,
            pattern_type_filter=LITERAL,
            principal_filter=None,
            host_filter=None,
            operation=ANY,
            permission_type=ANY,
        )
        for name in names
    )
    return Write(
        request=delete_acls.DeleteAclsRequest(filters=filters),
        response_type=delete_acls.DeleteAclsResponse,
        errors=lambda answer: [each.error_code for each in answer.filter_results],
    )
