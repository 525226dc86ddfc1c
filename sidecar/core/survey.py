"""One look at a cluster from outside: where its head is, and how far each broker has come.

Pure values and the rules that make them; `sidecar.net.surveyor` does the asking, in this order: the head, then every
position. So a lag is what a broker had not read when it was asked of all that was committed when the head was asked. A
broker that has read records committed in between stands above the head; its lag is 0, never negative.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from codec.error_codes import ErrorCode
from sidecar.core.error_names import error_name
from sidecar.core.head import QuorumAnswer, Verdict, advanced, judge
from sidecar.core.ids import NodeId, Offset, Seq
from sidecar.core.view import Head

NO_DESCRIBE_QUORUM = "the brokers do not offer DescribeQuorum"
NO_POSITION = "reports no metadata position: not a KRaft broker"
_REFUSED = (
    "DescribeQuorum was refused with CLUSTER_AUTHORIZATION_FAILED; the principal needs Describe on the cluster resource"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """One broker.

    Attributes:
        answered: whether it answered at all.
        offset: of its metadata image, inclusive; None when unknown.
        reason: why the offset is unknown; None when it is known.
    """

    node_id: NodeId
    host: str
    port: int
    answered: bool
    offset: Offset | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NoHead:
    """Why the head is unknown.

    Attributes:
        refused: asking this broker again would not help.
    """

    reason: str
    refused: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What one look found.

    Attributes:
        brokers: all that the cluster names, by ascending node id.
    """

    cluster_id: str | None
    head: Head | NoHead
    brokers: tuple[Standing, ...]

    @property
    def answered(self) -> bool:
        """Whether any broker did."""
        return any(standing.answered for standing in self.brokers)

    def lag_records(self, standing: Standing) -> int | None:
        """Committed records that this broker had not read; None when its position or the head is unknown."""
        if standing.offset is None or isinstance(self.head, NoHead):
            return None
        return max(0, self.head.offset - standing.offset)


def read_head(known: Head | None, response: Mapping[str, Any], asked: Seq) -> Head | NoHead:
    """What a decoded DescribeQuorum answer says of the head, given what is known."""
    error_code = response["error_code"]
    if error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
        return NoHead(reason=_REFUSED, refused=True)
    if error_code:
        refused = error_code == ErrorCode.UNSUPPORTED_VERSION
        return NoHead(reason=f"DescribeQuorum was answered with {error_name(error_code)}", refused=refused)
    answer = QuorumAnswer.from_response(response)
    if answer is None:
        return NoHead(reason="DescribeQuorum was answered with an error about the metadata log")
    verdict = judge(known, answer)
    if verdict is not Verdict.CONFIRMED:
        return NoHead(reason=verdict.value)
    return advanced(known, answer, asked)
