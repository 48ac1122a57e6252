"""Limit open connections, and the time to send a request's head: uvicorn limits neither."""

from __future__ import annotations

from asyncio import TimerHandle, Transport
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

MOST = 128  # open connections; a browser opens six
TOO_LATE = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
HEAD_SECONDS = 10.0  # from the earliest possible start of a request until its head is complete


class Connection(H11Protocol):  # type: ignore[misc] # uvicorn's types are not followed
    """One connection. Beyond `MOST`, a new one replaces the one that waits longest for a request.

    So a flood of idle connections closes its own, and a connection that sends a request is
    answered.
    """

    _late: TimerHandle | None = None
    _since = 0.0

    def connection_made(self, transport: Transport) -> None:
        """Count the connection, and close the longest waiting one above the limit."""
        super().connection_made(transport)
        self._since = self.loop.time()
        self._watch()
        if len(self.server_state.connections) > MOST:
            waiting = [one for one in self.server_state.connections if one.waits]
            min(waiting, key=lambda one: one._since)._close()  # may be this one, if all others are being answered

    def data_received(self, data: bytes) -> None:
        """Read on, and check whether a request has begun."""
        try:
            super().data_received(data)
        except h11.LocalProtocolError:  # uvicorn refuses a request during the answer to the previous one
            self._close()
        self._watch()

    def connection_lost(self, error: Exception | None) -> None:
        """Remove the connection."""
        self._unwatch()
        super().connection_lost(error)

    @property
    def waits(self) -> bool:
        """Whether a request's head is missing or incomplete."""
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
        if self.conn.trailing_data[0]:  # a browser also opens connections without a request
            self.transport.write(TOO_LATE)
        self.server_state.connections.discard(self)
        self.transport.close()

    def _close(self) -> None:
        self.server_state.connections.discard(self)  # at once: new connections may arrive before this one is lost
        self.transport.abort()


def limits() -> dict[str, Any]:
    """Return arguments for uvicorn's config."""
    # The backlog is also the number of connections accepted in a row, before their requests are
    # read: well below MOST.
    return {"http": Connection, "ws": "none", "backlog": MOST // 4}
