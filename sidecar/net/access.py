"""How the sidecar gets to the brokers: over which TLS, and as whom. One place for all its connections.

What the configuration names is read when this is made and again with `prepare`; passwords and tokens are read for every
login, so that one that was replaced is used from then on. Whoever opens a connection asks here first. Knows no socket.
"""

import logging
import ssl
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from config.faults import ConfigError
from config.rules import is_tls
from config.sidecar import ClusterSecurity
from config.tls import client_context
from sidecar.net.sasl import Credentials, Login

log = logging.getLogger("tidegate.access")

SHUTDOWN_TIMEOUT_S: Final = 2.0
"""How long the end of TLS on a connection that we close may take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientTls:
    """TLS of one connection that we open.

    Attributes:
        server_hostname: the name that was dialled: told to the peer (SNI), and looked for in its certificate.
    """

    context: ssl.SSLContext
    server_hostname: str


class Endpoint(NamedTuple):
    """Where a connection goes: a resolved address, TLS if it is spoken there, and our login if one is asked for."""

    host: str
    port: int
    tls: ClientTls | None
    login: Login | None


def tls_arguments(tls: ClientTls | None, timeout_ms: int) -> dict[str, Any]:
    """What ``loop.create_connection`` must be told besides the address."""
    if tls is None:
        return {}
    return {
        "ssl": tls.context,
        "server_hostname": tls.server_hostname,
        # The caller's own limit ends first, and says so in its own words.
        "ssl_handshake_timeout": timeout_ms / 1000 + SHUTDOWN_TIMEOUT_S,
        "ssl_shutdown_timeout": SHUTDOWN_TIMEOUT_S,
    }


@dataclass(slots=True, kw_only=True)
class Prepared:
    """What is made of a section `cluster.security`."""

    security: ClusterSecurity
    context: ssl.SSLContext | None
    credentials: Credentials | None


class Access:
    """See the module.

    Raises:
        config.faults.ConfigError: a file cannot be used.
    """

    def __init__(self, security: ClusterSecurity) -> None:
        self._complaint = ""
        self._prepared = self.prepare(security)

    @staticmethod
    def prepare(security: ClusterSecurity) -> Prepared:
        """What `take` takes over: the files are read here.

        Raises:
            config.faults.ConfigError: a file cannot be used.
        """
        context = client_context(security.ssl) if is_tls(security.protocol) else None
        return Prepared(security=security, context=context, credentials=Credentials.of(security))

    def take(self, prepared: Prepared) -> None:
        """Obeys this from now on; connections that are open stay as they are."""
        self._prepared = prepared

    def tls(self, host: str) -> ClientTls | None:
        """TLS of a connection to this host; None where brokers speak none."""
        context = self._prepared.context
        return None if context is None else ClientTls(context=context, server_hostname=host)

    @property
    def login(self) -> Login | None:
        """The sidecar's own login; None where brokers ask for none."""
        return None if self._prepared.credentials is None else self

    def now(self) -> Credentials:
        """The credentials as their file has them now; if that cannot be read, as it had them last."""
        prepared = self._prepared
        try:
            credentials = Credentials.of(prepared.security)
        except ConfigError as error:
            if self._complaint != str(error):
                self._complaint = str(error)
                log.warning("%s; the login goes on with what the file held before", error)
        else:
            self._complaint = ""
            prepared.credentials = credentials
        assert prepared.credentials is not None, "asked only where `login` is not None"
        return prepared.credentials


def explain_tls(error: ssl.SSLError, host: str) -> str:
    """Why TLS with a broker failed, and what to do about it."""
    if isinstance(error, ssl.SSLCertVerificationError):
        what = error.verify_message or "not valid"
        if "mismatch" in what:
            return (
                f"the certificate is not for {host}: {what}; dial a name that it carries, or set verify_hostname: false"
            )
        return f"the certificate is not trusted: {what}; name its authority in cluster.security.ssl.ca_file"
    reason = (error.reason or "").upper()
    if "CERTIFICATE" in reason or "UNKNOWN_CA" in reason:
        return f"the broker does not take our certificate ({reason}); see cluster.security.ssl.cert_file"
    if reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG"):
        return "no TLS answers there; set cluster.security.protocol to PLAINTEXT or SASL_PLAINTEXT, or use the TLS port"
    return f"TLS failed: {reason or type(error).__name__}"
