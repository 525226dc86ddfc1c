"""Rules that several keys of a backend's file must keep together. As `rules` for the sidecar's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from config.rules import Broken, is_tls, ssl_faults
from config.values import HostPort, may_collide

if TYPE_CHECKING:
    from config.backend import BackendConfig, BackendSecurity, Node

HOUR_MS = 3_600_000
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


def security_faults(security: BackendSecurity) -> Iterator[Broken]:
    """What the protocol needs is there, and no key is there that it, or the absence of an authorizer, would ignore."""
    protocol, client_auth = security.protocol, security.client_auth
    yield from ssl_faults(security.ssl, protocol)
    if is_tls(protocol):
        if security.ssl.cert_file is None:
            yield ("ssl", "cert_file"), f"required with protocol {protocol}"
        if client_auth == "none" and security.ssl.ca_file is not None:
            yield ("ssl", "ca_file"), "has no effect with client_auth none; set client_auth, or leave it out"
        elif client_auth != "none" and security.ssl.ca_file is None:
            yield ("ssl", "ca_file"), f"required with client_auth {client_auth}: who signed the certificates of clients"
        if not security.ssl.verify_hostname:
            yield ("ssl", "verify_hostname"), "has no effect on a listener: clients show no host name; leave it out"
    elif client_auth != "none":
        yield ("client_auth",), f"has no effect with protocol {protocol}; set protocol SSL"
    if not protocol.startswith("SASL_"):
        for key, default in (("users_file", None), ("session_lifetime_ms", HOUR_MS)):
            if getattr(security, key) != default:
                yield (key,), f"has no effect with protocol {protocol}; set protocol {_with_sasl(protocol)}"
    if protocol == "PLAINTEXT" and security.delegation_token_secret_file is not None:
        yield ("delegation_token_secret_file",), "has no effect where clients have no name; set protocol SASL_PLAINTEXT"
    if security.authorizer == "none":
        for key in ("super_users", "allow_everyone_if_no_acl_found"):
            if getattr(security, key):
                yield (key,), "has no effect without an authorizer; set authorizer standard"


def _with_sasl(protocol: str) -> str:
    return "SASL_SSL" if protocol == "SSL" else "SASL_PLAINTEXT"


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
    yield from _local_faults(config)
    yield from _port_faults(config)


def _local_faults(config: BackendConfig) -> Iterator[Broken]:
    """The nodes of a process are nodes of the file, and what is spread over processes is durable and reachable."""
    if config.local is None:
        return
    known = {node.id for node in config.nodes}
    for index, node_id in enumerate(config.local):
        if node_id not in known:
            yield ("local", index), "must be the id of a node"
        if node_id in config.local[:index]:
            yield ("local", index), "must not name a node twice"
    controllers = {node.id for node in config.nodes if "controller" in node.roles}
    if controllers <= set(config.local):
        return
    if config.data_dir is None and controllers & set(config.local):
        yield ("data_dir",), "required where controllers run in several processes: a voter must not forget its vote"
    for index, node in enumerate(config.nodes):
        if node.controller_listen is not None and node.controller_listen.is_wildcard:
            yield ("nodes", index, "controller_listen"), "must be an address that the other processes can connect to"


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
