"""The server run on a port of this machine until it is interrupted, and the browser opened on it."""

from __future__ import annotations

import secrets
import socket
import threading
import warnings
import webbrowser
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import uvicorn

from tallystick.errors import BadInput
from tallystick.web.app import app
from tallystick.web.connections import limits

HOST = "127.0.0.1"
QUEUED = 1024  # connections that nobody has accepted yet


def serve(source: str | None, settings: Mapping[str, Any], *, port: int, browser: bool) -> None:
    """Serve the page until interrupted; its address is printed once it can be opened.

    Args:
        source: what it shows first; None is a preset.
        settings: config keys to set over that.
        port: of this machine; 0 takes a free one.
        browser: whether to open one.
    """
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((HOST, port))
    except OSError as error:
        raise BadInput(f"--port {port}: {error.strerror or error}", code="bad-value") from None
    listening.listen()
    token = secrets.token_urlsafe(24)
    address = f"http://{HOST}:{listening.getsockname()[1]}/{token}/"

    def ready() -> None:
        print(f"{address}\nThe page works on this machine alone; Ctrl-C ends it.", flush=True)  # noqa: T201
        if browser:
            threading.Thread(target=_open, args=(address,), daemon=True).start()

    # No access log: it would show the token. No warnings: each request that is no HTTP would give one.
    config = uvicorn.Config(
        app(token, source, settings), log_level="error", access_log=False, server_header=False, **limits()
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of a coroutine that Ctrl-C came before
        _Server(config, ready).run(sockets=[listening])


class _Server(uvicorn.Server):  # type: ignore[misc] # its types are not followed
    """Says when it can be asked."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and let the system queue more connections than are accepted in a row."""
        await super().startup(sockets)
        for one in sockets or []:
            one.listen(QUEUED)
        self._ready()


def _open(address: str) -> None:
    with suppress(OSError, webbrowser.Error):  # the address is printed too
        webbrowser.open(address)
