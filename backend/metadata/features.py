"""UpdateFeatures (57): another level of a feature is finalized (KIP-584, KIP-778). Errors and messages are Kafka 4.4's.

This software has one feature, `metadata.version`. A level that a node does not support is refused; a lower one is
allowed where no record of the metadata log changed in between.
"""

from collections.abc import Mapping
from typing import Any, Final

from backend.metadata.errors import ApiError
from backend.metadata.image import Image
from backend.metadata.records import BrokerFeature, FeatureLevelRecord
from backend.metadata.writes import Body, Outcome, WriteContext, WriteRequest, error_fields
from codec.error_codes import ErrorCode

METADATA_VERSION: Final = "metadata.version"
SUPPORTED: Final = (BrokerFeature(name=METADATA_VERSION, min_supported_version=7, max_supported_version=33),)
"""Levels of `metadata.version`, from 3.3-IV3, the oldest that Kafka 4 supports, to that of Kafka 4.4."""

UPGRADE: Final = 1
SAFE_DOWNGRADE: Final = 2
UNSAFE_DOWNGRADE: Final = 3
_NEW_RECORDS: Final = frozenset({7, 8, 11, 13, 14, 15, 17, 23, 30, 32, 33})
"""The levels of `metadata.version` that brought a record or a field of one."""
_FOR_ALL: Final = "The update failed for all features since the following feature had an error: "


def update_features(request: WriteRequest, image: Image, context: WriteContext) -> Outcome:
    """UpdateFeatures (57); all levels are finalized or none. v0 cannot say that it means a downgrade, as in Kafka."""
    updates: list[Mapping[str, Any]] = request.body["feature_updates"]
    try:
        records = tuple(_update(update, image, context.controller_id) for update in updates)
    except ApiError as error:
        failed: Body = {"error_code": error.code.value, "error_message": f"{_FOR_ALL}{error.message}", "results": []}
        return Outcome(records=(), response={"throttle_time_ms": 0, **failed})
    results: list[Body] = [
        {"feature": update["feature"], "error_code": ErrorCode.NONE.value, "error_message": "NONE"}
        for update in updates
    ]
    return Outcome(
        records=() if request.body.get("validate_only") else records,
        response={"throttle_time_ms": 0, **error_fields(None), "results": results},
    )


def _update(update: Mapping[str, Any], image: Image, controller_id: int) -> FeatureLevelRecord:
    """The record that finalizes one level.

    Raises:
        ApiError: INVALID_UPDATE_VERSION.
    """
    name, level, kind = update["feature"], update["max_version_level"], update.get("upgrade_type", UPGRADE)
    finalized = image.features.get(name, 0)
    reason = _fault(name, level, kind, finalized, image, controller_id)
    if reason is not None:
        raise ApiError(ErrorCode.INVALID_UPDATE_VERSION, f"Invalid update version {level} for feature {name}. {reason}")
    if any(at in _NEW_RECORDS for at in range(level + 1, finalized + 1)):
        reason = (
            "Unsafe metadata downgrade is not supported in this version."
            if kind == UNSAFE_DOWNGRADE
            else "Refusing to perform the requested downgrade because it might delete metadata information."
        )
        raise ApiError(
            ErrorCode.INVALID_UPDATE_VERSION,
            f"Unsupported metadata.version downgrade from {finalized} to {level}. {reason}",
        )
    return FeatureLevelRecord(name=name, feature_level=level)


def _fault(name: str, level: int, kind: int, finalized: int, image: Image, controller_id: int) -> str | None:
    if kind not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        return "The controller does not support the given upgrade type."
    if level < 0:
        return "A feature version cannot be less than 0."
    reason = _unsupported(f"Local controller {controller_id}", SUPPORTED, name, level)
    for broker in image.cluster.registered():
        reason = reason or _unsupported(f"Broker {broker.broker_id}", broker.features, name, level)
    if reason is not None:
        return reason
    if name != METADATA_VERSION:
        return f"Feature {name} not found."
    if level < finalized and kind == UPGRADE:
        return (
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe "
            "downgrade."
        )
    if level > finalized and kind != UPGRADE:
        return "Can't downgrade to a newer version."
    return None


def _unsupported(who: str, features: tuple[BrokerFeature, ...], name: str, level: int) -> str | None:
    """Why a node does not support that level; level 0 of a feature that it has never heard of is no level at all."""
    feature = next((feature for feature in features if feature.name == name), None)
    if feature is None:
        return None if level == 0 else f"{who} does not support this feature."
    if feature.min_supported_version <= level <= feature.max_supported_version:
        return None
    return f"{who} only supports versions {feature.min_supported_version}-{feature.max_supported_version}"
