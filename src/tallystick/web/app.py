"""The server: the page's files, and its answers."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from tallystick.report.page import STYLE_SHEET
from tallystick.web.guard import TOO_LARGE, Guard, TooLarge
from tallystick.web.process import SECONDS, Worker
from tallystick.web.start import start

if TYPE_CHECKING:
    from starlette.types import ASGIApp

STATIC = Path(__file__).parent / "static"


def app(
    token: str, source: str | None = None, settings: Mapping[str, Any] | None = None, *, seconds: float = SECONDS
) -> ASGIApp:
    """The ASGI application.

    Args:
        token: what the first part of every address must be.
        source: what the page shows first, and may ask for beside the presets; None is a preset.
        settings: config keys to set over it.
        seconds: for one answer.
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
        return Response(await worker.ask(await request.body()), media_type="application/json")

    async def too_large(_: Request, __: Exception) -> Response:
        return PlainTextResponse(TOO_LARGE, 413)

    @asynccontextmanager
    async def running(_: Starlette) -> AsyncIterator[None]:
        yield
        await worker.end()

    routes = [
        Route("/", page),
        Route("/page.css", style),
        Route("/start", begin),
        Route("/answers", answer, methods=["POST"]),
        Mount("/static", StaticFiles(directory=STATIC)),
    ]
    return Guard(Starlette(routes=routes, lifespan=running, exception_handlers={TooLarge: too_large}), token)
