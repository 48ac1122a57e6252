"""Run the server on a local port until it is interrupted, and open the browser."""

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
QUEUED = 1024  # connections waiting to be accepted


def serve(source: str | None, settings: Mapping[str, Any], *, port: int, browser: bool) -> None:
    """Serve the page until interrupted; print its address once it can be opened.

    Args:
        source: the source shown first; None is a preset.
        settings: config keys to set over the source.
        port: a port of this machine; 0 takes a free one.
        browser: whether to open a browser.

    Raises:
        BadInput: if the port cannot be used.
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
        print(f"{address}\nThe page is served on this machine only; press Ctrl-C to stop.", flush=True)  # noqa: T201
        if browser:
            threading.Thread(target=_open, args=(address,), daemon=True).start()

    # No access log: it would show the token. No warnings: uvicorn warns about each request that is
    # not HTTP.
    config = uvicorn.Config(
        app(token, source, settings), log_level="error", access_log=False, server_header=False, **limits()
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # about a coroutine that Ctrl-C interrupted before it ran
        _Server(config, ready).run(sockets=[listening])


class _Server(uvicorn.Server):  # type: ignore[misc] # its types are not followed
    """A uvicorn server that calls `ready` when it accepts requests."""

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
