"""What a cluster says of its own metadata: the head of the log, and how far each broker has read it.

Blocking, for the harness; asks real Kafka only, through the raw client. Facts used: an ApiVersions v3 answer of a
broker carries the offset of its image as FinalizedFeaturesEpoch, and DescribeQuorum's high watermark is exclusive.
"""

from dataclasses import dataclass

from kio.schema.api_versions.v3 import ApiVersionsResponse
from kio.schema.describe_quorum.v1 import DescribeQuorumRequest, DescribeQuorumResponse
from kio.schema.describe_quorum.v1.request import PartitionData, TopicData
from kio.schema.errors import ErrorCode
from kio.schema.metadata.v12 import MetadataRequest, MetadataResponse
from kio.schema.types import TopicName
from kio.static.primitive import i32

from tests.support.address import Address
from tests.support.raw_client import API_VERSIONS, ask_once

ASK_TIMEOUT_S = 5.0
DESCRIBE_QUORUM = DescribeQuorumRequest(
    topics=(TopicData(topic_name=TopicName("__cluster_metadata"), partitions=(PartitionData(partition_index=i32(0)),)),)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The last committed metadata record, and the controller that said so."""

    offset: int
    leader_id: int
    leader_epoch: int


def image_offset(broker: Address) -> int:
    """The offset of the broker's metadata image; raises as `ask_once`."""
    return ask_once(broker, API_VERSIONS, ApiVersionsResponse, timeout_s=ASK_TIMEOUT_S).finalized_features_epoch


def head(broker: Address) -> Head | None:
    """The head as this broker gets it from the active controller, or None while it is unknown; raises as `ask_once`."""
    answer = ask_once(broker, DESCRIBE_QUORUM, DescribeQuorumResponse, timeout_s=ASK_TIMEOUT_S)
    if answer.error_code is not ErrorCode.none:
        return None
    quorum = answer.topics[0].partitions[0]
    if quorum.error_code is not ErrorCode.none or quorum.high_watermark < 0:
        return None
    return Head(offset=quorum.high_watermark - 1, leader_id=quorum.leader_id, leader_epoch=quorum.leader_epoch)


def known_brokers(broker: Address) -> set[int]:
    """The ids of the brokers that this broker believes alive; raises as `ask_once`."""
    request = MetadataRequest(topics=(), allow_auto_topic_creation=False, include_topic_authorized_operations=False)
    answer = ask_once(broker, request, MetadataResponse, timeout_s=ASK_TIMEOUT_S)
    return {node.node_id for node in answer.brokers}
