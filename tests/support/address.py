"""A host and a port, as every part of the test support passes them around.

Knows nothing of Kafka.
"""

from typing import NamedTuple, Self


class Address(NamedTuple):
    """Where something listens."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `HOST:PORT`.

        Raises:
            ValueError: if there is no colon, or the port is no number from 1 to 65535.
        """
        host, _, port = text.rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) < 65536:
            raise ValueError(f"expected HOST:PORT, got {text!r}")
        return cls(host, int(port))

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"
