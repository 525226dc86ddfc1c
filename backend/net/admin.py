"""The backend's HTTP listener: metrics, liveness, readiness. It changes nothing.

Knows paths and status codes; what the answers say comes from the functions that it is given.
"""

from collections.abc import Callable
from typing import Final, final

from aiohttp import web

SHUTDOWN_TIMEOUT_S: Final = 1.0
_METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


class AdminTaken(Exception):
    """The address cannot be listened on; the text says why."""


@final
class Admin:
    """The listener.

    Args:
        metrics: Prometheus text.
        reasons: why the cluster is not ready; empty when it is.
    """

    def __init__(self, host: str, port: int, metrics: Callable[[], bytes], reasons: Callable[[], list[str]]) -> None:
        self._host = host
        self._port = port
        self._metrics = metrics
        self._reasons = reasons
        application = web.Application()
        application.router.add_get("/metrics", self._get_metrics)
        application.router.add_get("/livez", self._get_livez)
        application.router.add_get("/readyz", self._get_readyz)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=SHUTDOWN_TIMEOUT_S)

    async def start(self) -> None:
        """Listen.

        Raises:
            AdminTaken: The address cannot be had.
        """
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, self._host, self._port).start()
        except OSError as error:
            raise AdminTaken(f"cannot listen on {self._host}:{self._port}: {error.strerror or error}") from error

    async def close(self) -> None:
        """End the listener and its connections."""
        await self._runner.cleanup()

    async def _get_metrics(self, request: web.Request) -> web.Response:
        return web.Response(body=self._metrics(), headers={"Content-Type": _METRICS_TYPE})

    async def _get_livez(self, request: web.Request) -> web.Response:
        return web.json_response({"status": "live"})

    async def _get_readyz(self, request: web.Request) -> web.Response:
        reasons = self._reasons()
        return web.json_response({"ready": not reasons, "reasons": reasons}, status=503 if reasons else 200)
