"""How long and how often the hosts of one source may be waited for: one allowance for all pieces of all its files.

The time is for honest slow lines. A checkpoint of hundreds of shards asks for tens of MB in as many requests: 30 MB take four
minutes at 1 Mbit/s, and `SECONDS` with a second for each `SLOWEST` bytes allow seven. A host that sends less ends
after two minutes, however it divides what it sends, and one that sends on and on after ten.
"""

from __future__ import annotations

import time
from threading import Lock

from tallystick.errors import BadInput

SECONDS = 120  # for all that is asked of the hosts of one source,
SLOWEST = 100_000  # and another second for so many bytes that came,
LONGEST = 600  # up to so many seconds
MOST_REQUESTS = 5_000  # redirects among them; each takes a millisecond or two of the processor
MOST_READS = 200_000  # from sockets, each of some ten microseconds


class Allowance:
    """What the hosts of one source have taken of it, counted by several threads. It begins with the first request."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._began: float | None = None
        self._bytes = self._reads = 0
        self.requests = 0

    def request(self) -> float:
        """Begin a request; how many seconds are left for it.

        Raises:
            BadInput: where none are, or there were too many requests.
        """
        with self._lock:
            if self._began is None:
                self._began = time.monotonic()
            self.requests += 1
        if self.requests > MOST_REQUESTS:
            raise BadInput(
                f"more than {MOST_REQUESTS:,} requests would be needed: download the files, and name them",
                code="too-large",
            )
        return self.left()

    def read(self, size: int) -> None:
        """Count so many bytes, which came at once; raises `BadInput` where the allowance is used up."""
        with self._lock:
            self._bytes += size
            self._reads += 1
        if self._reads > MOST_READS:
            raise BadInput(f"what it sends comes in more than {MOST_READS:,} bits and pieces", code="too-large")
        self.left()

    def left(self) -> float:
        """How many seconds are left; `BadInput` where none are."""
        if self._began is None:
            return SECONDS
        allowed = min(SECONDS + self._bytes / SLOWEST, LONGEST)
        left = self._began + allowed - time.monotonic()
        if left <= 0:
            raise BadInput(
                f"all its pieces together took more than {allowed:,.0f} seconds: too slow to wait for, download the files"
                " and name them",
                code="unreachable",
            )
        return left
