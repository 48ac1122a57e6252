"""Limits on the time and the requests spent on the hosts of one source.

One allowance serves all pieces of all files of a source. The time suits slow but honest lines. A
checkpoint of hundreds of shards needs tens of MB in as many requests: 30 MB take four minutes at
1 Mbit/s. `SECONDS`, with a second for each `SLOWEST` bytes, allow seven minutes. A slower host is
dropped after two minutes, however it splits its data. A host that never stops sending is dropped
after ten.
"""

from __future__ import annotations

import time
from threading import Lock

from tallystick.errors import BadInput

SECONDS = 120  # for all requests to the hosts of one source
SLOWEST = 100_000  # bytes received that add another second
LONGEST = 600  # seconds at most
MOST_REQUESTS = 5_000  # including redirects; each takes a millisecond or two of CPU time
MOST_READS = 200_000  # from sockets, each about ten microseconds


class Allowance:
    """Time, bytes and requests that one source has used. Thread-safe.

    The time starts with the first request.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._began: float | None = None
        self._bytes = self._reads = 0
        self.requests = 0

    def request(self) -> float:
        """Begin a request, and return the seconds left for it.

        Raises:
            BadInput: if no seconds are left, or there were too many requests.
        """
        with self._lock:
            if self._began is None:
                self._began = time.monotonic()
            self.requests += 1
        if self.requests > MOST_REQUESTS:
            raise BadInput(
                f"needs more than {MOST_REQUESTS:,} requests: download the files, and name the folder",
                code="too-large",
            )
        return self.left()

    def read(self, size: int) -> None:
        """Count `size` bytes from one read of a socket.

        Raises:
            BadInput: if the allowance is used up.
        """
        with self._lock:
            self._bytes += size
            self._reads += 1
        if self._reads > MOST_READS:
            raise BadInput(f"the answer arrives in more than {MOST_READS:,} pieces", code="too-large")
        self.left()

    def left(self) -> float:
        """Return the seconds that are left.

        Raises:
            BadInput: if none are left.
        """
        if self._began is None:
            return SECONDS
        allowed = min(SECONDS + self._bytes / SLOWEST, LONGEST)
        left = self._began + allowed - time.monotonic()
        if left <= 0:
            raise BadInput(
                f"the requests took more than {allowed:,.0f} seconds in total: download the files, and name the folder",
                code="unreachable",
            )
        return left
