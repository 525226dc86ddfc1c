"""Who asks: what a broker knows of a client once its connection is made, and hands on with each of its requests."""

from dataclasses import dataclass
from typing import Final, final

ANONYMOUS: Final = "User:ANONYMOUS"
"""A client that nobody asked who it is."""
LOOPBACK: Final = "127.0.0.1"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """A client of one connection.

    Attributes:
        principal: Who it is, as `Type:name`.
        host: The address it comes from, as access rules name it.
        may_ask_for_tokens: Whether it may use the delegation token APIs: it has a name, and not by a token.
    """

    principal: str = ANONYMOUS
    host: str = LOOPBACK
    may_ask_for_tokens: bool = False


ANYBODY: Final = Client()
"""An anonymous client of this machine."""
