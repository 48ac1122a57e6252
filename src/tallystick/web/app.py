"""The ASGI application: the page's files, and its answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from tallystick.report.html.page import STYLE_SHEET
from tallystick.web.bootstrap import STATIC, start
from tallystick.web.process import SECONDS, Worker
from tallystick.web.security import TOO_LARGE, TOO_SLOW, SecurityMiddleware, TooLarge, TooSlow

if TYPE_CHECKING:
    from starlette.types import ASGIApp

GRACE = 1.0  # seconds to finish an answer after its client has left: restarting the process takes about as long


def app(
    token: str, source: str | None = None, settings: Mapping[str, Any] | None = None, *, seconds: float = SECONDS
) -> ASGIApp:
    """Return the ASGI application.

    Args:
        token: the first path segment that every request must have.
        source: the source shown first, which requests may name in addition to presets; None is a
            preset.
        settings: config keys to set over the source.
        seconds: time limit for one answer.
    """
    worker = Worker(source, seconds=seconds)
    first = json.dumps(start(source, settings or {})).encode()

    async def page(request: Request) -> Response:
        if not request.url.path.endswith("/"):
            return RedirectResponse(f"/{token}/")
        return FileResponse(STATIC / "explore.html")

    async def style(_: Request) -> Response:
        return FileResponse(STYLE_SHEET)

    async def begin(_: Request) -> Response:
        return Response(first, media_type="application/json")

    async def answer(request: Request) -> Response:
        asked = asyncio.ensure_future(worker.ask(await request.body()))
        left = asyncio.ensure_future(_left(request))
        try:
            await asyncio.wait({asked, left}, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait({asked}, timeout=None if not left.done() else GRACE)
        finally:  # the client has left: the next request must not wait for its answer
            left.cancel()
            asked.cancel()
        with suppress(asyncio.CancelledError):
            return Response(await asked, media_type="application/json")
        return Response(status_code=204)

    async def too_large(_: Request, __: Exception) -> Response:
        return PlainTextResponse(TOO_LARGE, 413)

    async def too_slow(_: Request, __: Exception) -> Response:
        return PlainTextResponse(TOO_SLOW, 408, {"connection": "close"})

    async def nobody(_: Request, __: Exception) -> Response:
        return Response(status_code=400)  # the client left before its request was complete

    @asynccontextmanager
    async def running(_: Starlette) -> AsyncIterator[None]:
        yield
        await worker.end()

    refusals: dict[Any, Any] = {TooLarge: too_large, TooSlow: too_slow, ClientDisconnect: nobody}
    routes = [
        Route("/", page),
        Route("/page.css", style),
        Route("/start.json", begin),
        Route("/answers", answer, methods=["POST"]),
        Mount("/static", StaticFiles(directory=STATIC)),
    ]
    return SecurityMiddleware(Starlette(routes=routes, lifespan=running, exception_handlers=refusals), token)


async def _left(request: Request) -> None:
    """Wait until the client has closed the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
