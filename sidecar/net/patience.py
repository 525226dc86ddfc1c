"""Against loops of error, close and reconnect (proxying.md 6.4): closes that are put off, lines that are not repeated.

    Backoff      how long a close waits that is due to a broker: longer the more often it has failed in a row
    Repeats      whether a line of the log says anything that was not said within the last minute
    keep_alive   lets the kernel find out that a peer is gone that never said so

Knows no connection; `sidecar.net.client` and `sidecar.net.home` ask.
"""

import asyncio
import socket
from collections import OrderedDict
from collections.abc import Hashable
from typing import Final

BACKOFF_S_MIN: Final = 0.05
BACKOFF_S_MAX: Final = 1.0
REPEAT_S: Final = 60.0
REMEMBERED_MAX: Final = 1000
"""Lines, and keys of a backoff, that are remembered; the oldest go first."""

_ALIVE_IDLE_S: Final = 60
_ALIVE_INTERVAL_S: Final = 20
_ALIVE_PROBES: Final = 3


class Backoff:
    """Failures in a row, by key."""

    def __init__(self) -> None:
        self._failures: OrderedDict[Hashable, int] = OrderedDict()

    def failed(self, key: Hashable) -> float:
        """Notes a failure; returns for how many seconds to wait."""
        failures = self._failures.pop(key, 0)
        self._failures[key] = failures + 1
        if len(self._failures) > REMEMBERED_MAX:
            self._failures.popitem(last=False)
        return min(BACKOFF_S_MAX, BACKOFF_S_MIN * (1 << min(failures, 10)))

    def succeeded(self, key: Hashable) -> None:
        """The next failure is the first."""
        self._failures.pop(key, None)


class Repeats:
    """What was said lately."""

    def __init__(self) -> None:
        self._said_s: OrderedDict[Hashable, float] = OrderedDict()

    def is_news(self, line: Hashable, now_s: float) -> bool:
        """Whether this was not said within `REPEAT_S`; it counts as said now if so."""
        said_s = self._said_s.get(line)
        if said_s is not None and now_s - said_s < REPEAT_S:
            return False
        self._said_s.pop(line, None)
        self._said_s[line] = now_s
        if len(self._said_s) > REMEMBERED_MAX:
            self._said_s.popitem(last=False)
        return True


def keep_alive(transport: asyncio.BaseTransport) -> None:
    """Has the kernel ask a silent peer whether it is there: one that is not is found out in two minutes."""
    connection = transport.get_extra_info("socket")
    if connection is None:
        return
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _ALIVE_IDLE_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _ALIVE_INTERVAL_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, _ALIVE_PROBES)
