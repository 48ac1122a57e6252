"""Guard stdout and stderr: a failed write is reported once, and never as a traceback."""

from __future__ import annotations

import errno
import io
import os
import select
import sys
from typing import Any, TextIO

from tallystick import startup
from tallystick.errors import BadInput
from tallystick.legible import ERRORS


class _Guarded(io.RawIOBase):
    """Raw bytes of a stream, written until one write fails; later bytes are dropped."""

    def __init__(self, under: Any) -> None:
        self._under = under
        self.failure: OSError | None = None

    def write(self, data: Any) -> int:
        """Write, or drop after a failure. Return the number of bytes handled."""
        if self.failure is None:
            try:
                while (written := self._under.write(data)) is None:  # another process made the terminal non-blocking
                    select.select([], [self], [])
                return int(written)
            except OSError as error:
                self.failure = error
        return len(data)

    def writable(self) -> bool:
        """Return True."""
        return True

    def fileno(self) -> int:
        """Return the stream's file descriptor."""
        return int(self._under.fileno())

    def isatty(self) -> bool:
        """Return whether the stream is a terminal."""
        return bool(self._under.isatty())


class _Answer(_Guarded):
    """Raw bytes of the answer: a failed write is an error, and nothing is written after Ctrl-C."""

    def write(self, data: Any) -> int:
        """Write, or drop if the reader has left.

        Raises:
            BadInput: if the output cannot be written.
            KeyboardInterrupt: after Ctrl-C.
        """
        if self.failure is None:
            if startup.interrupted():  # and the exception was caught, as torch does while it imports numpy
                raise KeyboardInterrupt
            written = super().write(data)
            _refuse(self.failure)
            return written
        return len(data)


def guard() -> None:
    """Replace `sys.stdout` and `sys.stderr` by guarded streams.

    Raises:
        BadInput: if standard output is closed.
    """
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - for the whole run
    else:
        sys.stderr = _guarded(sys.stderr, _Guarded)  # nobody can read an error about stderr
    if sys.stdout is None:
        raise BadInput("standard output is closed: redirect it to a file, or to /dev/null", code="unwritable")
    sys.stdout = _guarded(sys.stdout, _Answer)


def reader_left() -> bool:
    """Return whether the reader of stdout, such as head, has left: the rest is not needed."""
    return _left(_failure())


def flush() -> None:
    """Write the buffered output.

    Raises:
        BadInput: if the answer could not be written completely, unless its reader has left.
    """
    sys.stdout.flush()
    _refuse(_failure())  # again, in case the first exception was caught


def drop() -> None:
    """Drop all further output: buffered output would be written as the process ends."""
    if (answer := _answer()) is not None:
        answer.failure = answer.failure or InterruptedError()


def _failure() -> OSError | None:
    answer = _answer()
    return None if answer is None else answer.failure


def _answer() -> _Answer | None:
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    return raw if isinstance(raw, _Answer) else None


def _refuse(failure: OSError | None) -> None:
    if failure is not None and not _left(failure):
        raise BadInput(f"standard output could not be written: {failure.strerror or failure}", code="unwritable")


def _left(failure: OSError | None) -> bool:
    """Return whether nobody reads any more; Windows reports that as an invalid argument."""
    return isinstance(failure, BrokenPipeError) or (
        failure is not None and sys.platform == "win32" and failure.errno == errno.EINVAL
    )


def _guarded(stream: TextIO, kind: type[_Guarded]) -> TextIO:
    """Return the same stream, with ASCII replacements for characters that its encoding lacks."""
    if not isinstance(stream, io.TextIOWrapper):
        return stream
    return io.TextIOWrapper(
        io.BufferedWriter(kind(getattr(stream.buffer, "raw", stream.buffer))),
        encoding=stream.encoding,
        errors=ERRORS,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )
