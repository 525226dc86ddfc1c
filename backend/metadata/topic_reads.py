"""Metadata (3) and DescribeTopicPartitions (75): topics and partitions as one broker's image shows them.

Topics come in order of their names, brokers of their ids. No topic is ever created by a read: the flag that allows it
is ignored, as on a broker with `auto.create.topics.enable=false`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self, final

from backend.metadata.authorizer import NOT_ASKED, Access, Operation, Resource
from backend.metadata.cluster import endpoint
from backend.metadata.cluster_reads import cluster_operations, controller_id
from backend.metadata.reader import Reader
from backend.metadata.records import NO_LEADER, UUID_ZERO, Uuid
from backend.metadata.topic_names import is_valid_topic_name
from backend.metadata.topics import INTERNAL_TOPICS, Partition, Topic
from backend.metadata.writes import Body
from codec.error_codes import ErrorCode

PARTITIONS_PER_ANSWER_MAX: Final = 2000
"""Kafka's `max.request.partition.size.limit`."""


_HIDDEN: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_WITHOUT_OPERATIONS: Final = (ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def metadata(api_version: int, request: Mapping[str, Any], reader: Reader) -> Body:
    """Metadata (3), all versions."""
    asked = request["topics"]
    everything = asked is None or (api_version == 0 and not asked)
    code = ErrorCode.NONE if everything else _fault(api_version, asked)
    if code is not ErrorCode.NONE:
        return _refused(code, asked)
    view = _View.of(api_version, reader)
    topics = _all_topics(reader, view) if everything else _asked_topics(api_version, asked, reader, view)
    if request.get("include_topic_authorized_operations"):
        for topic in topics:
            if topic["error_code"] not in _WITHOUT_OPERATIONS:
                topic["topic_authorized_operations"] = reader.access.operations(Resource.TOPIC, topic["name"])
    alive = reader.image.cluster.alive()
    brokers = [
        {"node_id": broker.broker_id, "host": point.host, "port": point.port, "rack": broker.rack}
        for broker in alive
        if (point := endpoint(broker, reader.listener_name)) is not None
    ]
    return {
        "throttle_time_ms": 0,
        "brokers": brokers,
        "cluster_id": reader.image.cluster_id,
        "controller_id": controller_id(reader),
        "topics": topics,
        "cluster_authorized_operations": cluster_operations(request, reader),
        "error_code": ErrorCode.NONE.value,
    }


def _fault(api_version: int, asked: Iterable[Mapping[str, Any]]) -> ErrorCode:
    """Ids came with v12, though v10 and v11 have a place for them; and without any id, every topic needs a name."""
    nameless = any(topic["name"] is None for topic in asked)
    by_id = any(topic.get("topic_id", UUID_ZERO) != UUID_ZERO for topic in asked)
    if api_version < 12 and (nameless or by_id):
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.UNKNOWN_SERVER_ERROR if nameless and not by_id else ErrorCode.NONE


def _refused(code: ErrorCode, asked: Iterable[Mapping[str, Any]]) -> Body:
    topics = [
        {**_no_topic(code, topic["name"] or "", topic.get("topic_id", UUID_ZERO)), "is_internal": False}
        for topic in asked
    ]
    return {"topics": topics, "error_code": code.value}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _View:
    """What one answer needs of the brokers, for all partitions in it.

    Attributes:
        reachable: The brokers that are not fenced and have the client's listener.
        registered: All brokers.
        only_reachable: Whether to leave out the others, as v0 does; later versions name all.
        tells_listeners: Whether the version has an error for a leader without that listener.
    """

    reachable: frozenset[int]
    registered: frozenset[int]
    only_reachable: bool
    tells_listeners: bool

    @classmethod
    def of(cls, api_version: int, reader: Reader) -> Self:
        cluster = reader.image.cluster
        registered = frozenset(cluster.brokers)
        return cls(
            reachable=frozenset(i for i in registered if cluster.alive_endpoint(i, reader.listener_name) is not None),
            registered=registered,
            only_reachable=api_version == 0,
            tells_listeners=api_version >= 6,
        )

    def leader_id(self, partition: Partition) -> int:
        return partition.leader if partition.leader in self.reachable else NO_LEADER

    def shown(self, broker_ids: tuple[int, ...]) -> list[int]:
        return [i for i in broker_ids if i in self.reachable] if self.only_reachable else list(broker_ids)

    def offline(self, partition: Partition) -> list[int]:
        return [i for i in partition.replicas if i not in self.reachable]


def _all_topics(reader: Reader, view: _View) -> list[Body]:
    by_name = reader.image.topics.by_name
    access = reader.access
    return [_topic(by_name[name], view) for name in sorted(by_name) if _may_see(access, name)]


def _asked_topics(api_version: int, asked: Iterable[Mapping[str, Any]], reader: Reader, view: _View) -> list[Body]:
    """Topics by id when any is asked for by id, which leaves out those that are asked for by name, as in Kafka.

    Of a topic that the client may not see, it learns no more than it has said itself.
    """
    topics = reader.image.topics
    access = reader.access
    ids = {topic["topic_id"] for topic in asked if topic.get("topic_id", UUID_ZERO) != UUID_ZERO}
    if api_version >= 12 and ids:
        names = sorted(topics.names[topic_id] for topic_id in ids if topic_id in topics.names)
        unknown = [_no_topic(ErrorCode.UNKNOWN_TOPIC_ID, None, i) for i in sorted(ids) if i not in topics.names]
        hidden = [
            {**_no_topic(_HIDDEN, None, topics.by_name[name].topic_id), "is_internal": False}
            for name in names
            if not _may_see(access, name)
        ]
        return unknown + hidden + [_topic(topics.by_name[name], view) for name in names if _may_see(access, name)]
    found: list[Body] = []
    missing: list[Body] = []
    for name in sorted({topic["name"] for topic in asked}):
        topic = topics.by_name.get(name)
        if not _may_see(access, name):
            missing.append({**_no_topic(_HIDDEN, name, UUID_ZERO), "is_internal": False})
        elif topic is not None:
            found.append(_topic(topic, view))
        else:
            valid = is_valid_topic_name(name)
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if valid else ErrorCode.INVALID_TOPIC_EXCEPTION
            missing.append(_no_topic(code, name, UUID_ZERO))
    return found + missing


def _may_see(access: Access, name: str) -> bool:
    return access.allows(Operation.DESCRIBE, Resource.TOPIC, name)


def _no_topic(code: ErrorCode, name: str | None, topic_id: Uuid) -> Body:
    return {
        "error_code": code.value,
        "name": name,
        "topic_id": topic_id,
        "is_internal": name in INTERNAL_TOPICS,
        "partitions": [],
        "topic_authorized_operations": NOT_ASKED,
    }


def _topic(topic: Topic, view: _View) -> Body:
    return {
        "error_code": ErrorCode.NONE.value,
        "name": topic.name,
        "topic_id": topic.topic_id,
        "is_internal": topic.name in INTERNAL_TOPICS,
        "partitions": [_partition(index, partition, view) for index, partition in enumerate(topic.partitions)],
        "topic_authorized_operations": NOT_ASKED,
    }


def _partition(index: int, partition: Partition, view: _View) -> Body:
    leader_id = view.leader_id(partition)
    replicas, isr = view.shown(partition.replicas), view.shown(partition.isr)
    code = ErrorCode.NONE
    if leader_id == NO_LEADER:
        known = view.tells_listeners and partition.leader in view.registered
        code = ErrorCode.LISTENER_NOT_FOUND if known else ErrorCode.LEADER_NOT_AVAILABLE
    elif len(replicas) < len(partition.replicas) or len(isr) < len(partition.isr):
        code = ErrorCode.REPLICA_NOT_AVAILABLE
    return {
        "error_code": code.value,
        "partition_index": index,
        "leader_id": leader_id,
        "leader_epoch": partition.leader_epoch,
        "replica_nodes": replicas,
        "isr_nodes": isr,
        "offline_replicas": view.offline(partition),
    }


def describe_topic_partitions(api_version: int, request: Mapping[str, Any], reader: Reader) -> Body:
    """DescribeTopicPartitions (75), page by page; a cursor that does not go with the topics refuses them all."""
    asked = {topic["name"] for topic in request["topics"]}
    cursor = request["cursor"]
    start = "" if cursor is None else cursor["topic_name"]
    if cursor is not None and ((asked and start not in asked) or cursor["partition_index"] < 0):
        refused = [
            {**_no_topic(ErrorCode.INVALID_REQUEST, topic["name"], UUID_ZERO), "is_internal": False}
            for topic in request["topics"]
        ]
        return {"throttle_time_ms": 0, "topics": refused, "next_cursor": None}
    first = 0 if cursor is None else cursor["partition_index"]
    limit = max(min(PARTITIONS_PER_ANSWER_MAX, request["response_partition_limit"]), 1)
    access = reader.access
    wanted = sorted(name for name in (asked or reader.image.topics.by_name) if name >= start)
    names = [name for name in wanted if _may_see(access, name)]
    view = _View.of(api_version, reader)
    found: list[Body] = []
    next_cursor: Body | None = None
    for name in names:
        if limit == 0:
            next_cursor = {"topic_name": name, "partition_index": 0}
            break
        topic = reader.image.topics.by_name.get(name)
        if topic is None:
            found.append(_unknown(name, access))
            continue
        page = range(len(topic.partitions))[first if name == start else 0 :][:limit]
        found.append(_described(topic, page, view, access))
        limit -= len(page)
        if page.stop < len(topic.partitions):
            next_cursor = {"topic_name": name, "partition_index": page.stop}
            break
    hidden = [
        {**_no_topic(_HIDDEN, name, UUID_ZERO), "is_internal": False}
        for name in wanted
        if asked and not _may_see(access, name)
    ]
    return {"throttle_time_ms": 0, "topics": found + hidden, "next_cursor": next_cursor}


def _unknown(name: str, access: Access) -> Body:
    valid = is_valid_topic_name(name)
    return {
        "error_code": (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if valid else ErrorCode.INVALID_TOPIC_EXCEPTION).value,
        "name": name,
        "topic_id": UUID_ZERO,
        "is_internal": name in INTERNAL_TOPICS,
        "partitions": [],
        "topic_authorized_operations": access.operations(Resource.TOPIC, name),
    }


def _described(topic: Topic, indexes: range, view: _View, access: Access) -> Body:
    return {
        "error_code": ErrorCode.NONE.value,
        "name": topic.name,
        "topic_id": topic.topic_id,
        "is_internal": topic.name in INTERNAL_TOPICS,
        "partitions": [_described_partition(index, topic.partitions[index], view) for index in indexes],
        "topic_authorized_operations": access.operations(Resource.TOPIC, topic.name),
    }


def _described_partition(index: int, partition: Partition, view: _View) -> Body:
    return {
        "error_code": ErrorCode.NONE.value,
        "partition_index": index,
        "leader_id": view.leader_id(partition),
        "leader_epoch": partition.leader_epoch,
        "replica_nodes": list(partition.replicas),
        "isr_nodes": list(partition.isr),
        "eligible_leader_replicas": list(partition.elr),
        "last_known_elr": list(partition.last_known_elr),
        "offline_replicas": view.offline(partition),
    }
