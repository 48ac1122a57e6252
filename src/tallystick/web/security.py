"""Check requests: loopback host, session token, Origin, body size and time."""

from __future__ import annotations

import asyncio
import hmac
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from tallystick.unforeseen import line_of, traceback_of

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_BYTES = 16_000_000  # of a request: the header of a checkpoint with some 100,000 tensors
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
BODY_SECONDS = 20.0  # from the end of a request's head to its last byte
TOO_SLOW = f"The request took longer than {BODY_SECONDS:g} seconds to arrive."
TOO_LARGE = f"The request is larger than {MOST_BYTES // 1_000_000} MB and was not read."
HEADERS = {
    # blob: lets the page download a picture that it already has. Nothing is loaded from other
    # hosts but the headers of the hub's models, and nothing inline runs.
    "content-security-policy": "default-src 'self'; img-src 'self' blob:; object-src 'none'; base-uri 'none';"
    " connect-src 'self' https://huggingface.co https://*.huggingface.co https://*.hf.co;"
    " form-action 'none'; frame-ancestors 'none'",
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",  # because the address contains the token
    "x-content-type-options": "nosniff",
}


class TooLarge(Exception):
    """Error for a request with too many bytes, raised while reading."""


class TooSlow(Exception):
    """Error for a request whose bytes arrive too slowly, raised while reading."""


class SecurityMiddleware:
    """ASGI middleware that passes the page's own requests, and refuses others without details."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self.app, self.token = app, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # the server closes the web socket
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        refusal = self._refused(scope["path"], headers)
        if refusal is not None:
            await _say(send, *refusal)
            return
        read, complete, end = 0, False, asyncio.get_running_loop().time() + BODY_SECONDS

        async def counted() -> Message:
            nonlocal read, complete
            try:
                async with asyncio.timeout_at(None if complete else end):  # then it waits for the client to leave
                    message = await receive()
            except TimeoutError:
                raise TooSlow from None
            read += len(message.get("body", b""))
            complete = not message.get("more_body", False)
            if read > MOST_BYTES:
                raise TooLarge
            return message

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *_encoded(HEADERS.items())]
            await send(message)

        try:
            await self.app({**scope, "root_path": f"/{self.token}"}, counted, guarded)
        except Exception as error:  # the client gets status 500
            sys.stderr.write(f"{traceback_of(error)}tallystick: {line_of(error)}\n")

    def _refused(self, path: str, headers: dict[str, str]) -> tuple[int, str] | None:
        """Return status and text of a refusal, or None to pass the request."""
        if not path.startswith("/"):  # OPTIONS *, CONNECT host:port, a whole URL, a word
            return 400, "The server answers only requests for a path."
        host = headers.get("host", "")
        if host.rpartition(":")[0] not in LOOPBACK and host not in LOOPBACK:
            # Another site could resolve its own host name to this machine (DNS rebinding), and
            # would then pass as the page's origin.
            return 403, "The server answers only on 127.0.0.1 and localhost."
        if headers.get("origin", f"http://{host}") != f"http://{host}":
            return 403, "The server answers only its own page, not other sites."
        given = path.split("/")[1]
        if not hmac.compare_digest(given.encode("utf-8", "replace"), self.token.encode()):
            return (
                403,
                "The address lacks this server's token: use the full address that tallystick explore printed.",
            )
        length = headers.get("content-length", "0")
        if not length.isdecimal() or len(length) > 18 or int(length) > MOST_BYTES:
            return 413, TOO_LARGE
        return None


def _encoded(headers: Iterable[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode()) for name, value in headers]


async def _say(send: Send, status: int, words: str) -> None:
    body = f"{words}\n".encode()
    # Closed, because the rest of the request is not read.
    own = {"content-type": "text/plain; charset=utf-8", "content-length": str(len(body)), "connection": "close"}
    await send({"type": "http.response.start", "status": status, "headers": _encoded({**HEADERS, **own}.items())})
    await send({"type": "http.response.body", "body": body})
