"""Which answers of Kafka carry an address of a broker: those we rewrite, and no others.

Every field of every message of Kafka 3.9 and 4.4 whose name speaks of a host, a port, an endpoint or a listener is in
one of the two tables below, and every entry of the tables is such a field. When a new Kafka adds one, this fails.
"""

from collections.abc import Callable
from fnmatch import fnmatchcase as fnmatch
from pathlib import Path
from typing import Final

import pytest

from tests.differential.definitions import definitions, paths

pytestmark = pytest.mark.kafka

VERSIONS: Final = ("3.9.1", "4.4.0")

REWRITTEN: Final = {
    "MetadataResponse": {"brokers.host", "brokers.port"},
    "FindCoordinatorResponse": {"host", "port", "coordinators.host", "coordinators.port"},
    "DescribeClusterResponse": {"brokers.host", "brokers.port"},
    "ProduceResponse": {"node_endpoints", "node_endpoints.host", "node_endpoints.port"},
    "FetchResponse": {"node_endpoints", "node_endpoints.host", "node_endpoints.port"},
    "ShareFetchResponse": {"node_endpoints", "node_endpoints.host", "node_endpoints.port"},
    "ShareAcknowledgeResponse": {"node_endpoints", "node_endpoints.host", "node_endpoints.port"},
}

A_RULE = "part of an access rule"
A_CLIENT = "where a client of the group is, as the broker saw or was told it"
A_CONTROLLER = "controllers' own addresses, on a listener that clients of brokers do not use"
BETWEEN_CONTROLLERS = "sent between controllers and brokers only"
A_KIND = "says which kind of endpoint is meant"
A_FEATURE = "a supported feature or version"
A_COUNTER = "counts changes"
IN_THE_LOG = "stands in the metadata log"

EXEMPT: Final = {
    ("DescribeAclsRequest", "host_filter"): A_RULE,
    ("DescribeAclsResponse", "resources.acls.host"): A_RULE,
    ("CreateAclsRequest", "creations.host"): A_RULE,
    ("DeleteAclsRequest", "filters.host_filter"): A_RULE,
    ("DeleteAclsResponse", "filter_results.matching_acls.host"): A_RULE,
    ("DescribeGroupsResponse", "groups.members.client_host"): A_CLIENT,
    ("ConsumerGroupDescribeResponse", "groups.members.client_host"): A_CLIENT,
    ("ShareGroupDescribeResponse", "groups.members.client_host"): A_CLIENT,
    ("StreamsGroupDescribeResponse", "groups.members.client_host"): A_CLIENT,
    ("StreamsGroupDescribeResponse", "groups.members.user_endpoint*"): A_CLIENT,
    ("StreamsGroupHeartbeatRequest", "user_endpoint*"): A_CLIENT,
    ("StreamsGroupHeartbeatResponse", "partitions_by_user_endpoint*"): A_CLIENT,
    ("StreamsGroupHeartbeatRequest", "endpoint_information_epoch"): A_COUNTER,
    ("StreamsGroupHeartbeatResponse", "endpoint_information_epoch"): A_COUNTER,
    ("DescribeQuorumResponse", "nodes.listeners*"): A_CONTROLLER,
    ("AddRaftVoterRequest", "listeners*"): A_CONTROLLER,
    ("DescribeClusterRequest", "endpoint_type"): A_KIND,
    ("DescribeClusterResponse", "endpoint_type"): A_KIND,
    ("ApiVersionsResponse", "supported_features"): A_FEATURE,
    ("BrokerRegistrationRequest", "features.*_supported_version"): A_FEATURE,
    ("ControllerRegistrationRequest", "features.*_supported_version"): A_FEATURE,
    ("UpdateRaftVoterRequest", "k_raft_version_feature.*_supported_version"): A_FEATURE,
    ("VotersRecord", "voters.k_raft_version_feature.*_supported_version"): A_FEATURE,
    ("VotersRecord", "voters.endpoints*"): IN_THE_LOG,
    ("BrokerRegistrationRequest", "listeners*"): BETWEEN_CONTROLLERS,
    ("ControllerRegistrationRequest", "listeners*"): BETWEEN_CONTROLLERS,
    ("BeginQuorumEpochRequest", "leader_endpoints*"): BETWEEN_CONTROLLERS,
    ("BeginQuorumEpochResponse", "node_endpoints*"): BETWEEN_CONTROLLERS,
    ("EndQuorumEpochRequest", "leader_endpoints*"): BETWEEN_CONTROLLERS,
    ("EndQuorumEpochResponse", "node_endpoints*"): BETWEEN_CONTROLLERS,
    ("EnvelopeRequest", "client_host_address"): BETWEEN_CONTROLLERS,
    ("FetchSnapshotResponse", "node_endpoints*"): BETWEEN_CONTROLLERS,
    ("UpdateRaftVoterRequest", "listeners*"): BETWEEN_CONTROLLERS,
    ("UpdateRaftVoterResponse", "current_leader.*"): BETWEEN_CONTROLLERS,
    ("VoteResponse", "node_endpoints*"): BETWEEN_CONTROLLERS,
    ("LeaderAndIsrRequest", "live_leaders.*"): BETWEEN_CONTROLLERS,
    ("UpdateMetadataRequest", "live_brokers.*"): BETWEEN_CONTROLLERS,
}
"""Message and pattern of the path, and why an address there is none of ours."""


@pytest.mark.row("1")
def test_every_address_is_rewritten_or_exempt(kafka_jars: Callable[[str], Path]) -> None:
    found = {
        (definition["name"], ".".join(path))
        for version in VERSIONS
        for definition in definitions(kafka_jars(version), version)
        for path in paths(definition)
        if any(word in path[-1] for word in ("host", "port", "endpoint", "listener"))
    }
    rewritten = {(name, path) for name, of in REWRITTEN.items() for path in of}
    exempt = {field for field in found for name, pattern in EXEMPT if field[0] == name and fnmatch(field[1], pattern)}
    assert found - exempt == rewritten
    assert not exempt & rewritten


def test_no_exemption_has_outlived_its_field(kafka_jars: Callable[[str], Path]) -> None:
    names = {
        (definition["name"], ".".join(path))
        for version in VERSIONS
        for definition in definitions(kafka_jars(version), version)
        for path in paths(definition)
    }
    for name, pattern in EXEMPT:
        assert any(field[0] == name and fnmatch(field[1], pattern) for field in names), (name, pattern)
