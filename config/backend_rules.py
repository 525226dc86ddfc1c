"""Rules that several keys of a backend's file must keep together. As `rules` for the sidecar's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from config.rules import Broken
from config.values import HostPort, may_collide

if TYPE_CHECKING:
    from config.backend import BackendConfig, Node

_OF_BROKERS = ("listen", "advertised_host", "replay_delay_ms", "publish_delay_ms")


def node_faults(node: Node) -> Iterator[Broken]:
    """Each role has its address, and no key is there for a role that the node has not."""
    if len(set(node.roles)) < len(node.roles):
        yield ("roles",), "must not name a role twice"
    if "broker" in node.roles:
        if node.listen is None:
            yield ("listen",), "required for a broker"
        elif node.listen.is_wildcard and node.advertised_host is None:
            yield ("advertised_host",), "required where listen has a wildcard address"
    else:
        for key in _OF_BROKERS:
            if getattr(node, key):
                yield (key,), "has no effect on a node without the role broker; leave it out"
    if "controller" in node.roles and node.controller_listen is None:
        yield ("controller_listen",), "required for a controller"
    if "controller" not in node.roles and node.controller_listen is not None:
        yield ("controller_listen",), "has no effect on a node without the role controller; leave it out"


def backend_faults(config: BackendConfig) -> Iterator[Broken]:
    """Node ids and ports are unique, both roles are there, and topics can be created with the defaults."""
    brokers = sum("broker" in node.roles for node in config.nodes)
    for role in ("controller", "broker"):
        if not any(role in node.roles for node in config.nodes):
            yield ("nodes",), f"must have at least one node with the role {role}"
    if 0 < brokers < config.defaults.replication_factor:
        yield ("defaults", "replication_factor"), f"must not be above the number of brokers ({brokers})"
    seen: set[int] = set()
    for index, node in enumerate(config.nodes):
        if node.id in seen:
            yield ("nodes", index, "id"), "must be unique among the nodes"
        seen.add(node.id)
    yield from _port_faults(config)


def _port_faults(config: BackendConfig) -> Iterator[Broken]:
    claimed: list[tuple[HostPort, str]] = []
    for index, node in enumerate(config.nodes):
        for key in ("listen", "controller_listen"):
            address: HostPort | None = getattr(node, key)
            if address is None:
                continue
            if owner := _owner(claimed, address):
                yield ("nodes", index, key), f"has the port of {owner}"
            claimed.append((address, f"{key} of node {node.id}"))
    if config.admin.bind is not None and (owner := _owner(claimed, config.admin.bind)):
        yield ("admin", "bind"), f"has the port of {owner}"


def _owner(claimed: list[tuple[HostPort, str]], address: HostPort) -> str | None:
    return next(
        (owner for other, owner in claimed if other.port == address.port and may_collide(other.host, address.host)),
        None,
    )
