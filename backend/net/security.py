"""How the brokers' ports for clients are secured, as values: who must show what, and who may do what."""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, final

from backend.metadata.authorizer import AuthorizerSettings
from backend.metadata.tokens import TokenSettings

PROTOCOLS: Final = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}
"""Kafka's security protocols and their numbers."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Security:
    """Of all brokers of a cluster.

    Attributes:
        protocol: one of `PROTOCOLS`; also the name of the listener.
        tls: for SSL and SASL_SSL; says too whether clients must show a certificate.
        passwords: user to password, for SASL PLAIN.
        session_lifetime_ms: after so long a client that came in by SASL must log in again; 0 for never. Kafka's
            default.
        tokens: how delegation tokens are made; None for no tokens.
        authorizer: None for none: everybody may do everything.
    """

    protocol: str = "PLAINTEXT"
    tls: ssl.SSLContext | None = None
    passwords: Mapping[str, str] = field(default_factory=dict, repr=False)
    session_lifetime_ms: int = 3_600_000
    tokens: TokenSettings | None = None
    authorizer: AuthorizerSettings | None = None

    @property
    def is_sasl(self) -> bool:
        """Whether clients have to log in."""
        return self.protocol.startswith("SASL_")


OPEN: Final = Security()
"""Everybody may come in, and do everything."""
