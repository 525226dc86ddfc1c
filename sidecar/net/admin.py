"""The admin listener: metrics, health and state over HTTP, for people, probes and scrapers. It changes nothing.

With a token, every path wants it as ``Authorization: Bearer ...``, but for what the probes of an orchestrator ask, who
cannot keep secrets: `/livez`, and of `/readyz` whether, not why. Knows paths and status codes; what the answers say
comes from the functions it is given.
"""

import hmac
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from aiohttp import web

from config.values import HostPort
from sidecar.net.reports import Readiness

SHUTDOWN_TIMEOUT_S: Final = 1.0
_OPEN: Final = frozenset({"/livez", "/readyz"})
_METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Where the answers come from; called for every request.

    Attributes:
        documents: path to what it shows, fit for JSON.
    """

    metrics: Callable[[], bytes]
    readiness: Callable[[], Readiness]
    documents: Mapping[str, Callable[[], Any]]


class AdminTaken(Exception):
    """The admin address cannot be listened on."""


class Admin:
    """The listener. `start` it, and `close` it in the end.

    Attributes:
        token: what requests must carry from now on; None: nothing.
    """

    def __init__(self, bind: HostPort, sources: Sources, token: str | None = None) -> None:
        self.token = token
        self._bind = bind
        application = web.Application(middlewares=[_explain, self._guard])
        application.router.add_get("/metrics", _metrics(sources))
        application.router.add_get("/livez", _live)
        application.router.add_get("/readyz", self._ready(sources))
        for path, document in sources.documents.items():
            application.router.add_get(path, _document(document))
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=SHUTDOWN_TIMEOUT_S)

    async def start(self) -> None:
        """Listens.

        Raises:
            AdminTaken: with the system's reason.
        """
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, self._bind.host, self._bind.port).start()
        except OSError as error:
            await self._runner.cleanup()
            raise AdminTaken(f"cannot listen on {self._bind}: {error.strerror or error}") from error

    async def close(self) -> None:
        """Ends the listener and its connections."""
        await self._runner.cleanup()

    def _may(self, request: web.Request) -> bool:
        if self.token is None:
            return True
        shown = request.headers.get("Authorization", "").encode(errors="surrogateescape")
        return hmac.compare_digest(shown, f"Bearer {self.token}".encode())

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.path in _OPEN or self._may(request):
            return await handler(request)
        error = {"error": "this needs the token in admin.token_file, as Authorization: Bearer TOKEN"}
        return web.json_response(error, status=401, headers={"WWW-Authenticate": "Bearer"})

    def _ready(self, sources: Sources) -> Handler:
        async def handler(request: web.Request) -> web.Response:
            readiness = sources.readiness()
            row = readiness.row() if self._may(request) else {"ready": readiness.ready}
            return web.json_response(row, status=200 if readiness.ready else 503)

        return handler


@web.middleware
async def _explain(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turns the two ways to ask wrongly into JSON that says how to ask."""
    try:
        return await handler(request)
    except web.HTTPNotFound:
        paths = sorted({resource.canonical for resource in request.app.router.resources()})
        return web.json_response({"error": "no such path", "paths": paths}, status=404)
    except web.HTTPMethodNotAllowed:
        error = {"error": f"{request.path} is only read: use GET"}
        return web.json_response(error, status=405, headers={"Allow": "GET, HEAD"})


async def _live(request: web.Request) -> web.Response:
    return web.json_response({"status": "live"})


def _metrics(sources: Sources) -> Handler:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(body=sources.metrics(), headers={"Content-Type": _METRICS_TYPE})

    return handler


def _document(document: Callable[[], Any]) -> Handler:
    async def handler(request: web.Request) -> web.Response:
        return web.json_response(document())

    return handler
