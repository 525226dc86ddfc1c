"""Taking over a changed configuration and changed files while the sidecar runs (proxying.md 6.2).

    SIGHUP, or a file that has changed and then stood still for one look
      -> read everything that is named, make all contexts: a fault ends it here, and nothing has changed
      -> live keys are obeyed from now on; the others are named, with the restart that they need

Connections that are open keep the TLS and the login that they have. Composes like `sidecar.app`, which owns it.
"""

import logging
import ssl
from collections.abc import Iterable
from pathlib import Path
from typing import Final, Protocol

from config.changes import Changes, Entangled, changes
from config.faults import ConfigError
from config.files import read_secret
from config.load import load_sidecar
from config.rules import is_tls
from config.sidecar import Listener as ListenerConfig
from config.sidecar import SidecarConfig
from config.tls import files_of, server_context
from sidecar.net.access import Access

log = logging.getLogger("tidegate.reload")

LOOKS_EVERY_S: Final = 1.0
"""How often is looked whether a file has changed."""

_Mark = tuple[int, int, int]


class Party(Protocol):
    """Who is told what to obey."""

    config: SidecarConfig

    def obey(self, config: SidecarConfig, secured: "Secured") -> None:
        """From now on."""


class Secured:
    """What is made of the files that a configuration names: all of it, or a `ConfigError`.

    Attributes:
        contexts: TLS of the listeners, in their order; None for those without.
        access: as of `Access.prepare`.
        admin_token: None for none.
    """

    def __init__(self, config: SidecarConfig) -> None:
        self.contexts = [listener_tls(listener) for listener in config.listeners]
        self.access = Access.prepare(config.cluster.security)
        self.admin_token = admin_token(config)


def listener_tls(listener: ListenerConfig) -> ssl.SSLContext | None:
    """TLS towards the clients of a listener.

    Raises:
        ConfigError: a file cannot be used.
    """
    security = listener.security
    return server_context(security.ssl, security.client_auth) if is_tls(security.protocol) else None


def admin_token(config: SidecarConfig) -> str | None:
    """The bearer token of the admin listener.

    Raises:
        ConfigError: its file cannot be used.
    """
    file = config.admin.token_file
    return None if file is None else read_secret(file)


class Reloader:
    """See the module.

    Args:
        source: the file of the configuration; None: it came from arguments, and only the files it names are read again.
    """

    def __init__(self, party: Party, source: Path | None) -> None:
        self._party = party
        self._source = source
        self._marks = self._look()
        self._unsettled: dict[Path, _Mark | None] | None = None

    def look(self) -> None:
        """To be called every `LOOKS_EVERY_S`: reloads once what has changed stands still."""
        marks = self._look()
        if marks == self._marks:
            self._unsettled = None
        elif marks == self._unsettled:
            names = sorted(str(file) for file, mark in marks.items() if self._marks.get(file, ()) != mark)
            self.reload(f"{', '.join(names)} changed" if names else "fewer files are named")
        else:
            self._unsettled = marks

    def reload(self, why: str) -> None:
        """Takes over what can be; logs what, what needs a restart, and why nothing was if that is so."""
        party = self._party
        try:
            found = party.config if self._source is None else load_sidecar(self._source)
            outcome = changes(party.config, found)
            secured = Secured(outcome.config)
        except ConfigError as error:
            for fault in error.faults:
                log.error("not reloaded, nothing has changed: %s", fault)
        except Entangled as error:
            log.error("not reloaded, nothing has changed: this configuration needs a restart (%s)", error)
        else:
            party.obey(outcome.config, secured)
            _tell(why, outcome)
        self._marks, self._unsettled = self._look(), None

    def _look(self) -> dict[Path, _Mark | None]:
        return {file: _mark(file) for file in files(self._party.config, self._source)}


def files(config: SidecarConfig, source: Path | None) -> Iterable[Path]:
    """The files whose content is obeyed until they are read again. Those of logins are read for every login."""
    if source is not None:
        yield source
    yield from files_of(config.cluster.security.ssl)
    for listener in config.listeners:
        yield from files_of(listener.security.ssl)
    if config.admin.token_file is not None:
        yield config.admin.token_file


def _mark(file: Path) -> _Mark | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def _tell(why: str, outcome: Changes) -> None:
    log.info("reloaded (%s): certificates and tokens were read again", why)
    if outcome.live:
        log.info("changed: %s", ", ".join(outcome.live))
    if outcome.restart:
        log.warning("changed in the file, and as before until a restart: %s", ", ".join(outcome.restart))
