"""Standard output and standard error of the command: what cannot be written is noticed once, and never ends in a traceback."""

from __future__ import annotations

import io
import os
import select
import sys
from typing import Any, TextIO

from tallystick import startup
from tallystick.errors import BadInput
from tallystick.legible import ERRORS


class _Guarded(io.RawIOBase):
    """The bytes of a stream, given on until one write fails; what comes after that is dropped."""

    def __init__(self, under: Any) -> None:
        self._under = under
        self.failure: OSError | None = None

    def write(self, data: Any) -> int:
        """Write, or drop. Returns how many bytes are dealt with."""
        if self.failure is None:
            try:
                while (written := self._under.write(data)) is None:  # a terminal that another process made non-blocking
                    select.select([], [self], [])
                return int(written)
            except OSError as error:
                self.failure = error
        return len(data)

    def writable(self) -> bool:
        """Always."""
        return True

    def fileno(self) -> int:
        """The number of the stream."""
        return int(self._under.fileno())

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        return bool(self._under.isatty())


class _Answer(_Guarded):
    """The bytes of an answer: one that cannot be written is an error, and none is written after Ctrl-C."""

    def write(self, data: Any) -> int:
        """Write, or drop where its reader has left. Raises `BadInput`, or KeyboardInterrupt."""
        if self.failure is None:
            if startup.interrupted():  # and somebody caught that, as torch does while it imports numpy
                raise KeyboardInterrupt
            written = super().write(data)
            _refuse(self.failure)
            return written
        return len(data)


def guard() -> None:
    """Put guarded streams in the place of `sys.stdout` and `sys.stderr`.

    Raises:
        BadInput: where standard output is closed.
    """
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - for the whole run
    else:
        sys.stderr = _guarded(sys.stderr, _Guarded)  # nobody can read that it cannot be written
    if sys.stdout is None:
        raise BadInput("standard output is closed: redirect it to a file, or to /dev/null", code="unwritable")
    sys.stdout = _guarded(sys.stdout, _Answer)


def reader_left() -> bool:
    """Whether the reader of standard output, such as head, has had enough. Nothing more needs to be computed for it."""
    return isinstance(_failure(), BrokenPipeError)


def flush() -> None:
    """Write what is still held back.

    Raises:
        BadInput: where the answer could not be written completely, unless its reader has had enough.
    """
    sys.stdout.flush()
    _refuse(_failure())  # once more, where somebody caught what was raised at the time


def drop() -> None:
    """Write nothing more: what is held back would be written as the process ends."""
    if (answer := _answer()) is not None:
        answer.failure = answer.failure or InterruptedError()


def _failure() -> OSError | None:
    answer = _answer()
    return None if answer is None else answer.failure


def _answer() -> _Answer | None:
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    return raw if isinstance(raw, _Answer) else None


def _refuse(failure: OSError | None) -> None:
    if failure is not None and not isinstance(failure, BrokenPipeError):
        raise BadInput(f"standard output could not be written: {failure.strerror or failure}", code="unwritable")


def _guarded(stream: TextIO, kind: type[_Guarded]) -> TextIO:
    """The same stream, with each character that its encoding lacks in ASCII."""
    if not isinstance(stream, io.TextIOWrapper):
        return stream
    return io.TextIOWrapper(
        io.BufferedWriter(kind(getattr(stream.buffer, "raw", stream.buffer))),
        encoding=stream.encoding,
        errors=ERRORS,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )
