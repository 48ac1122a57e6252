"""How many connections may be open, and how long one may wait with an unfinished request: uvicorn limits neither."""

from __future__ import annotations

from asyncio import TimerHandle, Transport
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

MOST = 128  # open at once; a browser opens six
TOO_LATE = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
HEAD_SECONDS = 10.0  # from the first moment that a request can begin until its head is complete


class Connection(H11Protocol):  # type: ignore[misc] # uvicorn's types are not followed
    """One connection. A new one beyond `MOST` takes the place of the one that has waited longest for a request.

    So a flood of connections that ask nothing closes its own, and a connection that asks at once is answered.
    """

    _late: TimerHandle | None = None
    _since = 0.0

    def connection_made(self, transport: Transport) -> None:
        """Count it, and make room for it."""
        super().connection_made(transport)
        self._since = self.loop.time()
        self._watch()
        if len(self.server_state.connections) > MOST:
            waiting = [one for one in self.server_state.connections if one.waits]
            min(waiting, key=lambda one: one._since)._close()  # this one, where all others are answered

    def data_received(self, data: bytes) -> None:
        """Read on; see whether a request has begun."""
        try:
            super().data_received(data)
        except h11.LocalProtocolError:  # uvicorn refuses a request while it answers the one before
            self._close()
        self._watch()

    def connection_lost(self, error: Exception | None) -> None:
        """Forget it."""
        self._unwatch()
        super().connection_lost(error)

    @property
    def waits(self) -> bool:
        """Whether the head of a request is still to come, or to be completed."""
        return self.cycle is None or bool(self.cycle.response_complete)

    def _watch(self) -> None:
        if not self.waits:
            self._unwatch()
        elif self._late is None and not self.transport.is_closing():
            self._late = self.loop.call_later(HEAD_SECONDS, self._end)

    def _unwatch(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _end(self) -> None:
        if self.conn.trailing_data[0]:  # a browser also opens connections on which it asks nothing
            self.transport.write(TOO_LATE)
        self.server_state.connections.discard(self)
        self.transport.close()

    def _close(self) -> None:
        self.server_state.connections.discard(self)  # at once: others may be made before it is lost
        self.transport.abort()


def limits() -> dict[str, Any]:
    """What uvicorn's config takes."""
    # It also accepts so many connections in a row, before it reads what the last ones asked: well below MOST.
    return {"http": Connection, "ws": "none", "backlog": MOST // 4}
