"""The server run on a port of this machine until it is interrupted, and the browser opened on it."""

from __future__ import annotations

import secrets
import socket
import threading
import webbrowser
from collections.abc import Mapping
from typing import Any

import uvicorn

from tallystick.errors import BadInput
from tallystick.web.app import app

HOST = "127.0.0.1"


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
        raise BadInput(f"--port {port}: {error.strerror or error}") from None
    listening.listen()  # from here on whoever connects is heard, if not yet answered
    token = secrets.token_urlsafe(24)
    address = f"http://{HOST}:{listening.getsockname()[1]}/{token}/"
    print(f"{address}\nThe page works on this machine alone; Ctrl-C ends it.", flush=True)  # noqa: T201
    if browser:
        threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
    # No access log: it would show the token.
    config = uvicorn.Config(app(token, source, settings), log_level="warning", access_log=False, server_header=False)
    uvicorn.Server(config).run(sockets=[listening])
