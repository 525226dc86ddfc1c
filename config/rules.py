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
    from config.sidecar import ClusterSecurity, Listener, ListenerSecurity, Probe, SecurityProtocol, SidecarConfig, Ssl

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
    yield from ssl_faults(security.ssl, security.protocol)
    sasl = security.sasl
    if not security.protocol.startswith("SASL_"):
        for key in ("mechanism", "username", "password_file", "token_file"):
            if getattr(sasl, key) is not None:
                remedy = "SASL_SSL" if security.protocol == "SSL" else "SASL_PLAINTEXT"
                yield ("sasl", key), f"has no effect with protocol {security.protocol}; set protocol {remedy}"
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


def ssl_faults(ssl: Ssl, protocol: SecurityProtocol) -> Iterator[Broken]:
    """Without TLS its keys would be ignored silently; a key without a certificate proves nothing."""
    if not is_tls(protocol):
        remedy = "SASL_SSL" if protocol.startswith("SASL_") else "SSL"
        for key in ("ca_file", "cert_file", "key_file", "key_password_file"):
            if getattr(ssl, key) is not None:
                yield ("ssl", key), f"has no effect with protocol {protocol}; set protocol {remedy}"
        if not ssl.verify_hostname:
            yield ("ssl", "verify_hostname"), f"has no effect with protocol {protocol}; set protocol {remedy}"
    elif ssl.cert_file is None:
        for key in ("key_file", "key_password_file"):
            if getattr(ssl, key) is not None:
                yield ("ssl", key), "has no effect without cert_file; name the certificate too"


def listener_security_faults(security: ListenerSecurity) -> Iterator[Broken]:
    """TLS of clients ends here: a proxy that rewrites addresses must read what it passes on."""
    ssl, client_auth = security.ssl, security.client_auth
    yield from ssl_faults(ssl, security.protocol)
    if not is_tls(security.protocol):
        if client_auth != "none":
            yield ("client_auth",), f"has no effect with protocol {security.protocol}; set protocol SSL"
        return
    if ssl.cert_file is None:
        reason = f"required with protocol {security.protocol}: TLS cannot pass through, for addresses are rewritten"
        yield ("ssl", "cert_file"), reason
    if client_auth == "none" and ssl.ca_file is not None:
        yield ("ssl", "ca_file"), "has no effect with client_auth none; set client_auth, or leave it out"
    elif client_auth != "none" and ssl.ca_file is None:
        yield ("ssl", "ca_file"), f"required with client_auth {client_auth}: who signed the certificates of clients"
    if not ssl.verify_hostname:
        yield ("ssl", "verify_hostname"), "has no effect on a listener: clients show no host name; leave it out"


def is_tls(protocol: SecurityProtocol) -> bool:
    """Whether connections of this protocol are encrypted."""
    return protocol in ("SSL", "SASL_SSL")


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
    if listener.identity == "sidecar" and listener.security.protocol.startswith("SASL_"):
        plain = listener.security.protocol.removeprefix("SASL_")
        yield (
            ("security", "protocol"),
            f"clients do not log in where the sidecar does it for them; set protocol {plain}",
        )


def sidecar_faults(config: SidecarConfig) -> Iterator[Broken]:
    """Listener names are unique, no two sockets claim one port, and the sidecar does not bootstrap from itself."""
    yield from _name_faults(config.listeners)
    yield from _identity_faults(config)
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


def _identity_faults(config: SidecarConfig) -> Iterator[Broken]:
    """With mutual TLS alone, brokers know nobody but who holds the certificate: that is the sidecar, not its client."""
    security = config.cluster.security
    if security.protocol != "SSL" or security.ssl.cert_file is None:
        return
    for index, listener in enumerate(config.listeners):
        if listener.identity == "client":
            reason = (
                "must be sidecar: TLS ends here, so the certificate of a client cannot pass through, "
                "and brokers would take each client for the sidecar"
            )
            yield ("listeners", index, "identity"), reason


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
