"""BrokerRegistration and BrokerHeartbeat: what a broker says of itself, as bodies of Kafka's tables and back. Pure."""

from collections.abc import Mapping
from typing import Any

from backend.metadata.records import UNASSIGNED_DIRECTORY, BrokerEndpoint, BrokerFeature
from backend.net.active_controller import Registration

Body = dict[str, Any]


def registration_request(registration: Registration, cluster_id: str) -> Body:
    """The body that registers a broker."""
    return {
        "broker_id": registration.broker_id,
        "cluster_id": cluster_id,
        "incarnation_id": registration.incarnation_id,
        "listeners": [
            {"name": point.name, "host": point.host, "port": point.port, "security_protocol": point.security_protocol}
            for point in registration.end_points
        ],
        "features": [
            {
                "name": feature.name,
                "min_supported_version": feature.min_supported_version,
                "max_supported_version": feature.max_supported_version,
            }
            for feature in registration.features
        ],
        "rack": None,
        "is_migrating_zk_broker": False,
        "log_dirs": [registration.log_dir],
        "previous_broker_epoch": -1,
    }


def read_registration(body: Mapping[str, Any]) -> Registration:
    """The registration in a body."""
    return Registration(
        broker_id=body["broker_id"],
        incarnation_id=body["incarnation_id"],
        end_points=tuple(BrokerEndpoint(**listener) for listener in body["listeners"]),
        log_dir=next(iter(body.get("log_dirs") or ()), UNASSIGNED_DIRECTORY),
        features=tuple(BrokerFeature(**feature) for feature in body["features"]),
    )


def heartbeat_request(broker_id: int, broker_epoch: int, image_offset: int, *, leaving: bool) -> Body:
    """The body of a heartbeat."""
    return {
        "broker_id": broker_id,
        "broker_epoch": broker_epoch,
        "current_metadata_offset": image_offset,
        "want_fence": False,
        "want_shut_down": leaving,
        "offline_log_dirs": [],
    }
