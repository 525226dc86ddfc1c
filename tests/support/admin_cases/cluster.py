"""DescribeCluster, DescribeDelegationToken, DescribeLogDirs, FindCoordinator, ListGroups."""

from collections.abc import Iterator

from codec.api_keys import ApiKey
from tests.support.admin_cases.case import (
    Body,
    Case,
)


def cluster() -> Iterator[Case]:
    """The cluster and the broker that answers."""
    for version in (0, 1, 2):
        yield Case(f"describe cluster, v{version}", ApiKey.DESCRIBE_CLUSTER, version, {})
        operations = {"include_cluster_authorized_operations": True}
        yield Case(f"describe cluster with operations, v{version}", ApiKey.DESCRIBE_CLUSTER, version, operations)
    yield Case("describe cluster: controllers", ApiKey.DESCRIBE_CLUSTER, 1, {"endpoint_type": 2})
    yield Case("describe cluster: unknown endpoints", ApiKey.DESCRIBE_CLUSTER, 1, {"endpoint_type": 9})
    yield Case("describe cluster: fenced too", ApiKey.DESCRIBE_CLUSTER, 2, {"include_fenced_brokers": True})
    for version in (1, 2, 3):
        body: Body = {"owners": None}
        yield Case(f"describe tokens, v{version}", ApiKey.DESCRIBE_DELEGATION_TOKEN, version, body)
    for version in (1, 3, 4):
        nothing: Body = {"topics": [{"topic": "nobody", "partitions": [0]}]}
        yield Case(f"describe log dirs of no topic, v{version}", ApiKey.DESCRIBE_LOG_DIRS, version, nothing)
    placed: Body = {"topics": [{"topic": "placed", "partitions": [0, 1]}]}
    yield Case("describe log dirs of a topic", ApiKey.DESCRIBE_LOG_DIRS, 4, placed)
    yield Case("describe log dirs of no partition", ApiKey.DESCRIBE_LOG_DIRS, 4, {"topics": []})


def coordinators() -> Iterator[Case]:
    """Last, for real Kafka makes the topic that it does not find."""
    for version in range(6):
        yield Case(f"list groups, v{version}", ApiKey.LIST_GROUPS, version, {})
    yield Case("find the coordinator of a group", ApiKey.FIND_COORDINATOR, 3, {"key": "g", "key_type": 0})
    keys: Body = {"key_type": 1, "coordinator_keys": ["t"]}
    yield Case("find the coordinator of a transaction", ApiKey.FIND_COORDINATOR, 4, keys)
