"""Rules that several keys must keep together.

Each function takes a section whose single values are in order and yields the place, relative to that section, and the
reason of every rule it breaks. The models call them; nothing here knows files or lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TypeAlias, cast

from pydantic_core import PydanticCustomError

from config.faults import KeyPath
from config.values import HostPort, PortRange, may_collide

if TYPE_CHECKING:
    from config.sidecar import ClusterSecurity, Listener, Probe, SidecarConfig

Broken: TypeAlias = tuple[KeyPath, str]
"""Where, relative to the section, and why."""

RULES_BROKEN = "rules_broken"


def refuse(broken: Iterable[Broken]) -> None:
    """Do nothing without broken rules; else raise the pydantic error that `broken_rules` reads."""
    if found := list(broken):
        reasons = "; ".join(reason for _, reason in found)
        raise PydanticCustomError(RULES_BROKEN, "{reasons}", {"reasons": reasons, "broken": found})


def broken_rules(context: dict[str, object]) -> list[Broken]:
    """What `refuse` was given, from the context of the error that it raised."""
    return cast("list[Broken]", context["broken"])


def security_faults(security: ClusterSecurity) -> Iterator[Broken]:
    """A SASL protocol needs a mechanism with all its parts; without one, parts would be ignored silently."""
    sasl = security.sasl
    if not security.protocol.startswith("SASL_"):
        for key in ("mechanism", "username", "password_file", "token_file"):
            if getattr(sasl, key) is not None:
                reason = f"has no effect with protocol {security.protocol}; set protocol SASL_PLAINTEXT"
                yield ("sasl", key), reason
        return
    if sasl.mechanism is None:
        yield ("sasl", "mechanism"), f"required with protocol {security.protocol}"
        return
    needed = ("token_file",) if sasl.mechanism == "OAUTHBEARER" else ("username", "password_file")
    for key in ("username", "password_file", "token_file"):
        if key in needed and getattr(sasl, key) is None:
            yield ("sasl", key), f"required with mechanism {sasl.mechanism}"
        elif key not in needed and getattr(sasl, key) is not None:
            yield ("sasl", key), f"has no effect with mechanism {sasl.mechanism}; leave it out"


def probe_faults(probe: Probe) -> Iterator[Broken]:
    """Probes are never rarer while requests wait than when idle."""
    if probe.min_interval_ms > probe.idle_interval_ms:
        yield ("min_interval_ms",), f"must not be above idle_interval_ms ({probe.idle_interval_ms})"


def listener_faults(listener: Listener) -> Iterator[Broken]:
    """The bootstrap port is no node port; advertised and real node ports pair up."""
    if listener.bind.port in listener.node_ports:
        yield ("node_ports",), f"must not contain the port of bind ({listener.bind.port})"
    advertised = listener.advertised_node_ports
    if advertised is not None and len(advertised) != len(listener.node_ports):
        counts = f"{len(listener.node_ports)} ports, not {len(advertised)}"
        yield ("advertised_node_ports",), f"must be as long as node_ports: {counts}"


def sidecar_faults(config: SidecarConfig) -> Iterator[Broken]:
    """Listener names are unique, no two sockets claim one port, and the sidecar does not bootstrap from itself."""
    yield from _name_faults(config.listeners)
    for index, listener in enumerate(config.listeners):
        found = (list(_collisions(earlier, index, listener)) for earlier in config.listeners[:index])
        yield from next(filter(None, found), ())
    for index, listener in enumerate(config.listeners):
        yield from _admin_collisions(config.admin.bind, index, listener)
    for index, server in enumerate(config.cluster.bootstrap_servers):
        if any(_is_own(server, listener) for listener in config.listeners) or server == config.admin.bind:
            yield ("cluster", "bootstrap_servers", index), "is a port of this sidecar; name a broker"


def _name_faults(listeners: tuple[Listener, ...]) -> Iterator[Broken]:
    seen: set[str] = set()
    for index, listener in enumerate(listeners):
        if listener.name in seen:
            yield ("listeners", index, "name"), "must be unique among the listeners"
        seen.add(listener.name)


def _collisions(one: Listener, index: int, other: Listener) -> Iterator[Broken]:
    """What `other`, the later of the two, claims although `one` has it."""
    if not may_collide(one.bind.host, other.bind.host):
        return
    if other.bind.port == one.bind.port:
        yield ("listeners", index, "bind"), f"has the port of listener `{one.name}`"
    if other.bind.port in one.node_ports:
        yield ("listeners", index, "bind"), f"has a node port of listener `{one.name}` ({one.node_ports})"
    if one.bind.port in other.node_ports:
        yield ("listeners", index, "node_ports"), f"must not contain the port of listener `{one.name}`"
    if other.node_ports.overlaps(one.node_ports):
        yield ("listeners", index, "node_ports"), f"must not overlap those of listener `{one.name}` ({one.node_ports})"


def _admin_collisions(admin: HostPort, index: int, listener: Listener) -> Iterator[Broken]:
    if not may_collide(admin.host, listener.bind.host):
        return
    if admin.port == listener.bind.port:
        yield ("admin", "bind"), f"has the port of listener `{listener.name}`"
    if admin.port in listener.node_ports:
        yield ("listeners", index, "node_ports"), f"must not contain the port of admin.bind ({admin.port})"


def _is_own(server: HostPort, listener: Listener) -> bool:
    ports = PortRange(listener.bind.port, listener.bind.port)
    return server.host == listener.bind.host and (server.port in ports or server.port in listener.node_ports)
