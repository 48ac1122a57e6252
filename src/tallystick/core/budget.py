"""Limits on the steps, bytes and seconds that reading one source may take.

All readers of a source share one budget: its shards, index, config, and work that follows.

    with one_source() as budget:                     # nested calls share the outer budget
        budget.read(len(content))                    # a header was read: allow its size once more
        budget.step(len(tokens))                     # before work: a step is about a microsecond
        budget.keep(80 * len(tokens), "its tokens")  # before allocating bytes that stay

Two kinds of limit stay constants of their readers: facts of a format, such as its most
dimensions, and the longest piece that is read at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import get_ident

from tallystick.errors import BadInput

try:
    from time import thread_time
except ImportError:  # a browser (Pyodide), where there is one thread
    from time import process_time as thread_time

STEPS = 10_000_000  # each about a microsecond: a checkpoint of 200,000 tensors takes a million
ROOM = 170_000_000  # bytes above the size of the headers; Python itself takes another 20 MB
SECONDS = 10.0  # CPU time in one thread, the last resort: a second for 100 kB of the largest text

_LOOK = 20_000  # steps between two looks at the clock


class OverBudget(BadInput):
    """Reading a source exceeds its budget: nothing more of it is read."""

    code = "too-large"


class Budget:
    """Steps, bytes and seconds that remain for one source."""

    def __init__(self) -> None:
        self.steps, self.room, self.seconds = STEPS, ROOM, SECONDS
        self._left, self._free = self.steps, self.room
        # CPU time at which each thread began. Work of other threads, such as training, is free.
        self._began = {get_ident(): thread_time()}
        self._look = self._left - _LOOK

    def step(self, count: int = 1) -> None:
        """Take `count` steps from the budget, before doing them.

        Raises:
            OverBudget: if no steps or seconds remain. The caller adds the file's name.
        """
        self._left -= count
        if self._left < self._look:
            self._look_up()

    def _look_up(self) -> None:
        if self._left < 0:
            raise OverBudget(f"reading it takes more than {self.steps:,} steps")
        now, thread = thread_time(), get_ident()
        if now - self._began.setdefault(thread, now) > self.seconds:
            raise OverBudget(f"reading it takes more than {self.seconds:g} seconds of CPU time")
        self._look = max(0, self._left - _LOOK)

    def keep(self, size: int, what: str) -> None:
        """Take `size` bytes of memory from the budget, before allocating them.

        Args:
            size: in bytes, roughly; a negative size gives bytes back.
            what: what fills them, for the message.

        Raises:
            OverBudget: if fewer bytes remain. The caller adds the file's name.
        """
        self._free -= size
        if self._free < 0:
            raise OverBudget(f"{what} would take more than {self.room:,} bytes of memory")

    def read(self, size: int) -> None:
        """Note that a header of `size` bytes was read, and allow as many bytes for its contents."""
        self.room += size
        self._free += size

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop the clock within the block: transformers builds a model under its own limits."""
        start, thread = thread_time(), get_ident()
        try:
            yield
        finally:
            self._began[thread] = self._began.get(thread, start) + thread_time() - start


_OPEN: ContextVar[Budget | None] = ContextVar("budget", default=None)


@contextmanager
def one_source() -> Iterator[Budget]:
    """Yield the budget of the enclosing source, or a new one."""
    budget = _OPEN.get()
    if budget is not None:
        yield budget
        return
    token = _OPEN.set(budget := Budget())
    try:
        yield budget
    finally:
        _OPEN.reset(token)


def current() -> Budget:
    """Return the budget of the source being read; a new one for a reader called by itself."""
    return _OPEN.get() or Budget()
