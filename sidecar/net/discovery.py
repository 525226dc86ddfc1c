"""Discovery: who the brokers are, asked of one of them every few seconds and whenever one of them is lost.

Asks with a Metadata request for no topics: it needs no privilege, and it cannot create anything.
"""

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from typing import Final

from codec.api_keys import ApiKey
from config.values import HostPort
from sidecar.core.events import Address, ClusterDescribed
from sidecar.core.ids import NodeId
from sidecar.net.access import Access
from sidecar.net.broker_connection import NO_TOPICS, BrokerConnection, BrokerUnavailable, connect
from sidecar.net.driver import Driver

log = logging.getLogger("tidegate.discovery")

INTERVAL_S: Final = 5.0
RETRY_S: Final = 0.5


async def describe(connection: BrokerConnection) -> ClusterDescribed:
    """The cluster as this broker sees it.

    Raises:
        BrokerUnavailable: it does not answer, or speaks no Metadata version of ours.
    """
    version = connection.version(ApiKey.METADATA)
    if version is None or version < 1:
        raise BrokerUnavailable("versions", "the broker speaks no Metadata version that Tidegate knows")
    answer = await connection.call(ApiKey.METADATA, version, NO_TOPICS)
    return ClusterDescribed(
        cluster_id=answer.get("cluster_id"),
        controller_id=answer["controller_id"],
        brokers=tuple(
            Address(NodeId(broker["node_id"]), broker["host"], broker["port"], broker.get("rack"))
            for broker in answer["brokers"]
        ),
    )


class Discovery:
    """Keeps the core's set of brokers up to date.

    Attributes:
        bootstrap: whom to ask when no broker is known, or none answers.
        fault: why the cluster could not be described last time; None if it could.
        rounds: how often it has been tried.
    """

    def __init__(self, driver: Driver, bootstrap: Sequence[tuple[str, int]], access: Access) -> None:
        self.fault: str | None = "the cluster has not been described yet"
        self.described = asyncio.Event()
        self.rounds = 0
        self._driver = driver
        self.bootstrap = list(bootstrap)
        self._access = access
        self._hurry = asyncio.Event()

    async def run(self) -> None:
        """Goes on until cancelled."""
        while True:
            found = await self._ask_somebody()
            self.rounds += 1
            if found is not None:
                self._driver.handle(found)
                self.described.set()
            self._hurry.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(INTERVAL_S if found is not None and self._all_up() else RETRY_S):
                    await self._hurry.wait()

    def _all_up(self) -> bool:
        return all(broker.up for broker in self._driver.core.cluster.view.brokers.values())

    def hasten(self) -> None:
        """Asks at once, not when it is time."""
        self._hurry.set()

    async def _ask_somebody(self) -> ClusterDescribed | None:
        faults: list[str] = []
        for host, port in self._candidates():
            place = str(HostPort(host, port))
            try:
                found = await self._ask(host, port)
            except BrokerUnavailable as error:
                faults.append(str(error) if place in str(error) else f"{place}: {error}")
                continue
            if found.brokers:
                if self.fault is not None:
                    log.info("cluster %s has %d brokers", found.cluster_id, len(found.brokers))
                self.fault = None
                return found
            faults.append(f"{place} knows no broker yet")
        # One text for all of them, in an order of its own: as long as it stays the same, nothing new is said.
        self._complain("; ".join(sorted(faults)))
        return None

    def _candidates(self) -> list[tuple[str, int]]:
        """The brokers that are farthest ahead first, so that discovery never goes back; then the bootstrap servers."""
        cluster = self._driver.core.cluster
        ahead = sorted(cluster.live, key=lambda node_id: -cluster.view.brokers[node_id].visible)
        known = [(cluster.addresses[node_id].host, cluster.addresses[node_id].port) for node_id in ahead]
        return list(dict.fromkeys([*known, *self.bootstrap]))

    async def _ask(self, host: str, port: int) -> ClusterDescribed:
        connection = await connect(
            host,
            port,
            tls=self._access.tls(host),
            credentials=self._access.login,
            timeout_ms=self._driver.connect_timeout_ms,
            frame_bytes_max=self._driver.limits.frame_bytes,
        )
        try:
            async with asyncio.timeout(self._driver.connect_timeout_ms / 1000):
                return await describe(connection)
        except TimeoutError as error:
            raise BrokerUnavailable("timeout", "the broker did not describe the cluster in time") from error
        finally:
            connection.close()

    def _complain(self, fault: str) -> None:
        if fault != self.fault:
            log.warning("cannot describe the cluster: %s", fault)
        self.fault = fault
