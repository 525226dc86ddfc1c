"""YAML or command line arguments to a validated configuration, or every fault at once with its line.

Joins the parts: `document` gives plain values and lines, the models in `sidecar` and `backend` check them,
`unsupported` says what this version does not do. Opens only the files that it is given; secrets stay in theirs until
somebody calls `files.read_secret`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import BaseModel

from config.backend import BackendConfig
from config.document import Document, Plain, read_document
from config.faults import ConfigError, Fault, KeyPath
from config.files import read_secret, read_text
from config.judge import judge
from config.masking import masked
from config.sidecar import ClusterSecurity, Section, SidecarConfig
from config.unsupported import BACKEND_UNSUPPORTED, UNSUPPORTED
from config.values import HostPort

__all__ = [
    "from_arguments",
    "load_any",
    "load_backend",
    "load_security",
    "load_sidecar",
    "masked",
    "parse_backend",
    "parse_sidecar",
    "read_secret",
]

Model = TypeVar("Model", bound=BaseModel)

_OPTIONS: Final[Mapping[KeyPath, str]] = {
    ("cluster", "bootstrap_servers"): "--bootstrap",
    ("listeners", 0, "bind"): "--listen",
    ("listeners", 0, "advertised_host"): "--listen",
    ("listeners", 0, "node_ports"): "--node-ports",
    ("admin", "bind"): "--admin",
}


class _CommandCluster(Section):
    security: ClusterSecurity = ClusterSecurity()


class _CommandConfig(Section):
    """What `--command-config` files hold."""

    cluster: _CommandCluster = _CommandCluster()


def load_sidecar(path: str | Path) -> SidecarConfig:
    """The configuration in a file.

    Raises:
        ConfigError: with all faults of the file, sorted by line.
    """
    return parse_sidecar(read_text(path), str(path))


def parse_sidecar(text: str, name: str, environment: Mapping[str, str] | None = None) -> SidecarConfig:
    """The configuration in a text.

    Args:
        text: YAML.
        name: what faults call it, normally the file's name.
        environment: where `${NAME}` is looked up; the process's own environment by default.

    Raises:
        ConfigError: with all faults of the text, sorted by line.
    """
    document = read_document(text, name, os.environ if environment is None else environment)
    return _from_document(SidecarConfig, document, document.value)


def load_backend(path: str | Path) -> BackendConfig:
    """The configuration of a backend in a file; as `load_sidecar`."""
    return parse_backend(read_text(path), str(path))


def parse_backend(text: str, name: str, environment: Mapping[str, str] | None = None) -> BackendConfig:
    """The configuration of a backend in a text; as `parse_sidecar`."""
    document = read_document(text, name, os.environ if environment is None else environment)
    return _from_document(BackendConfig, document, document.value)


def load_any(path: str | Path) -> SidecarConfig | BackendConfig:
    """The configuration in a file of either kind: the one that has more of the file's top level keys.

    A file with keys of neither, or as many of both, is taken for a sidecar's. Raises as `load_sidecar`.
    """
    document = read_document(read_text(path), str(path), os.environ)
    names = set(document.value) if isinstance(document.value, dict) else set()
    if len(names & BackendConfig.model_fields.keys()) > len(names & SidecarConfig.model_fields.keys()):
        return _from_document(BackendConfig, document, document.value)
    return _from_document(SidecarConfig, document, document.value)


def load_security(path: str | Path) -> ClusterSecurity:
    """The section `cluster.security` in a `--command-config` file.

    The section may stand in its place (`cluster: {security: ...}`), below `security`, or be the whole file.

    Raises:
        ConfigError: with all faults of the file, sorted by line.
    """
    document = read_document(read_text(path), str(path), os.environ)
    tree: Plain = document.value
    around: KeyPath = ("cluster", "security")
    if isinstance(tree, dict) and "cluster" in tree:
        around = ()
    elif isinstance(tree, dict) and "security" in tree:
        around = ("cluster",)
    for key in reversed(around):
        tree = {str(key): tree}
    return _from_document(_CommandConfig, document, tree, depth=len(around)).cluster.security


def from_arguments(
    *,
    bootstrap: str,
    listen: str | None = None,
    node_ports: str | None = None,
    admin: str | None = None,
    command_config: str | Path | None = None,
) -> SidecarConfig:
    """The configuration that `tidegate run --bootstrap ...` describes; what is None keeps its default.

    Args:
        bootstrap: `HOST:PORT`, or several with commas.
        listen: `HOST:PORT` of the bootstrap port; unless a wildcard, its host is also what clients are told.
        node_ports: `FIRST-LAST`.
        admin: `HOST:PORT`.
        command_config: a file as `load_security` reads it.

    Raises:
        ConfigError: with all faults; those of arguments are named by their option, such as `--listen`.
    """
    listener: dict[str, Plain] = {}
    if listen is not None:
        listener = {"bind": listen, **_advertised(listen)}
    if node_ports is not None:
        listener["node_ports"] = node_ports
    cluster: dict[str, Any] = {"bootstrap_servers": bootstrap}
    faults: list[Fault] = []
    if command_config is not None:
        try:
            cluster["security"] = load_security(command_config)
        except ConfigError as error:
            faults = error.faults
    tree: dict[str, Any] = {"cluster": cluster, "listeners": [listener]}
    if admin is not None:
        tree["admin"] = {"bind": admin}
    config, broken = judge(SidecarConfig, tree)
    faults = [*(_option_fault(at, reason) for at, reason in broken), *faults]
    if faults or config is None:
        raise ConfigError(faults)
    return config


def _advertised(listen: str) -> dict[str, Plain]:
    try:
        address = HostPort.parse(listen)
    except ValueError:
        return {}
    return {} if address.is_wildcard else {"advertised_host": address.host}


def _option_fault(path: KeyPath, reason: str) -> Fault:
    name = next((option for at, option in _OPTIONS.items() if path[: len(at)] == at), "arguments")
    return Fault(name=name, reason=reason)


def _from_document(model: type[Model], document: Document, tree: Plain, depth: int = 0) -> Model:
    """The model of `tree`, which is the document's value with `depth` levels put around it."""
    faults = list(document.faults)
    config = None
    if () not in document.faulty:
        table = BACKEND_UNSUPPORTED if model is BackendConfig else UNSUPPORTED
        config, broken = judge(model, tree, table)
        places = ((at[depth:], reason) for at, reason in broken)
        faults += (document.fault(at, reason) for at, reason in places if not document.is_faulty(at))
    if faults or config is None:
        raise ConfigError(faults)
    return config
