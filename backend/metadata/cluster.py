"""The brokers of an image: who is registered, where, and who is fenced. Sits under `image`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self, final

from rpds import HashTrieMap

from backend.metadata.errors import ReplayError
from backend.metadata.records import (
    BrokerEndpoint,
    BrokerRegistrationChangeRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterImage:
    """All registered brokers, fenced ones too, by id. A registration is kept as the record that would make it."""

    brokers: HashTrieMap[int, RegisterBrokerRecord]

    @classmethod
    def empty(cls) -> Self:
        """No broker."""
        return cls(brokers=HashTrieMap())

    def alive(self) -> list[RegisterBrokerRecord]:
        """The brokers that are not fenced, in ascending order of their ids."""
        return [broker for broker in self.registered() if not broker.fenced]

    def registered(self) -> list[RegisterBrokerRecord]:
        """All brokers, in ascending order of their ids."""
        return sorted(self.brokers.values(), key=lambda broker: broker.broker_id)

    def is_active(self, broker_id: int) -> bool:
        """Whether the broker may lead: registered, not fenced, not about to shut down."""
        broker = self.brokers.get(broker_id)
        return broker is not None and not broker.fenced and not broker.in_controlled_shutdown

    def alive_endpoint(self, broker_id: int, listener_name: str) -> BrokerEndpoint | None:
        """Where clients of that listener reach the broker, or None while it is fenced or has no such listener."""
        broker = self.brokers.get(broker_id)
        return None if broker is None or broker.fenced else endpoint(broker, listener_name)

    def register(self, record: RegisterBrokerRecord) -> ClusterImage:
        """With a broker that has registered."""
        return replace(self, brokers=self.brokers.insert(record.broker_id, record))

    def unregister(self, record: UnregisterBrokerRecord) -> ClusterImage:
        """Without a broker that has left.

        Raises:
            ReplayError: It is not registered with that epoch.
        """
        self._registration(record.broker_id, record.broker_epoch)
        return replace(self, brokers=self.brokers.remove(record.broker_id))

    def change(self, record: BrokerRegistrationChangeRecord) -> ClusterImage:
        """With a registration that has changed in part.

        Raises:
            ReplayError: The broker is not registered with that epoch.
        """
        broker = self._registration(record.broker_id, record.broker_epoch)
        changed = replace(
            broker,
            fenced=broker.fenced if record.fenced == 0 else record.fenced > 0,
            in_controlled_shutdown=broker.in_controlled_shutdown or record.in_controlled_shutdown > 0,
            log_dirs=record.log_dirs or broker.log_dirs,
            cordoned_log_dirs=(
                broker.cordoned_log_dirs if record.cordoned_log_dirs is None else record.cordoned_log_dirs
            ),
        )
        return replace(self, brokers=self.brokers.insert(record.broker_id, changed))

    def _registration(self, broker_id: int, broker_epoch: int) -> RegisterBrokerRecord:
        broker = self.brokers.get(broker_id)
        if broker is None or broker.broker_epoch != broker_epoch:
            raise ReplayError(f"broker {broker_id} is not registered with epoch {broker_epoch}")
        return broker


def endpoint(broker: RegisterBrokerRecord, listener_name: str) -> BrokerEndpoint | None:
    """The broker's endpoint of that listener."""
    return next((point for point in broker.end_points if point.name == listener_name), None)
