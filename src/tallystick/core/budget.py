"""The budget of a source: how many steps, bytes and seconds reading it may take, whatever its files claim.

Every reader takes from one budget: all shards of a checkpoint, its index and its config, and what follows from them.

    with one_source() as budget:                     # the door of a source; inside another source, its budget
        budget.read(len(content))                    # a header of this size is read: as much again may be kept
        budget.step(len(tokens))                     # before work: a step is about a microsecond
        budget.keep(80 * len(tokens), "its tokens")  # before memory: bytes that stay until the source is read

Two kinds of limit are no part of it, and stay constants of their readers: facts of a format, such as its most
dimensions, and the longest piece that is read at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import get_ident
from time import thread_time

from tallystick.errors import BadInput

STEPS = 10_000_000  # of about a microsecond: a checkpoint of 200,000 tensors takes a million
ROOM = 170_000_000  # bytes above those of the headers; Python itself takes another 20 MB
SECONDS = 7.0  # of the processor, in one thread: the last resort, for steps that take longer than they should

_LOOK = 20_000  # steps between two looks at the clock


class OverBudget(BadInput):
    """AttentionRun a source takes more than it may: nothing more of it is read."""

    code = "too-large"


class Budget:
    """What is left of the steps, bytes and seconds of one source."""

    def __init__(self) -> None:
        self.steps, self.room, self.seconds = STEPS, ROOM, SECONDS
        self._left, self._free = self.steps, self.room
        # When each thread began to read. Another thread's work, such as training, is none of a reader's.
        self._began = {get_ident(): thread_time()}
        self._look = self._left - _LOOK

    def step(self, count: int = 1) -> None:
        """Take steps, before they are done.

        Raises:
            BadInput: where fewer are left, or no seconds. The caller says which file it is.
        """
        self._left -= count
        if self._left < self._look:
            self._look_up()

    def _look_up(self) -> None:
        if self._left < 0:
            raise OverBudget(f"reading it takes more than {self.steps:,} steps")
        now, thread = thread_time(), get_ident()
        if now - self._began.setdefault(thread, now) > self.seconds:
            raise OverBudget(f"reading it takes more than {self.seconds:g} seconds of the processor")
        self._look = max(0, self._left - _LOOK)

    def keep(self, size: int, what: str) -> None:
        """Take bytes of memory, before they are filled.

        Args:
            size: in bytes, roughly; below zero gives back.
            what: what fills them, for the message.

        Raises:
            BadInput: where fewer are left. The caller says which file it is.
        """
        self._free -= size
        if self._free < 0:
            raise OverBudget(f"{what} would take more than {self.room:,} bytes of memory")

    def read(self, size: int) -> None:
        """Note that a header of `size` bytes is read: what is made of it may be larger by as much."""
        self.room += size
        self._free += size

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Count no seconds within: transformers builds a model, which has limits of its own."""
        start, thread = thread_time(), get_ident()
        try:
            yield
        finally:
            self._began[thread] = self._began.get(thread, start) + thread_time() - start


_OPEN: ContextVar[Budget | None] = ContextVar("budget", default=None)


@contextmanager
def one_source() -> Iterator[Budget]:
    """The budget of what is read within: the budget of the source around it, or else a new one."""
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
    """The budget of the source that is being read; a new one where a reader is called by itself."""
    return _OPEN.get() or Budget()
