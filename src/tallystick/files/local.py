"""Opening a file: a regular one of a known size, or one line that says why not."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO, NamedTuple

from tallystick.errors import BadInput, quoted
from tallystick.files.remote import Location, NotThere, Remote

_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)

LFS_POINTER = b"version https://git-lfs"
_START = 32  # bytes that tell formats apart, and a pointer from all of them


class OpenFile(NamedTuple):
    """A file open at its beginning. It is handed on to its reader, which opens it no second time."""

    path: Location
    stream: BufferedReader
    size: int  # bytes
    start: bytes  # the first of them


@contextmanager
def opened(path: Location) -> Iterator[OpenFile]:
    """A regular file for reading, wherever it is; a Git LFS pointer in its place is refused."""
    stream, size = open_regular(path)
    with stream:
        start = stream.read(_START)
        refuse_pointer(path, start)
        stream.seek(0)
        yield OpenFile(path, stream, size, start)


def here(path: Location) -> Path:
    """A file of a format in which what is to be read lies all over it: one on this machine."""
    if isinstance(path, Remote):
        raise BadInput(
            f"{path}: files of this format are read only where they are on this machine: download it", code="malformed"
        )
    return path


def exists(path: Location) -> bool | None:
    """Whether there is such a file or folder; None where only opening it can tell.

    Never raises, as `Path.exists` does for a name that is too long.
    """
    return path.exists() if isinstance(path, Remote) else os.path.exists(path)


def open_regular(path: Location) -> tuple[BufferedReader, int]:
    """The file opened for reading, and its size in bytes. Pipes and devices are refused, not waited for."""
    if isinstance(path, Remote):
        return path.open()
    try:
        # Looked at before it is opened, since opening some devices does something; and again when it is open.
        _refuse_others(path, path.stat())
        # Without O_NONBLOCK, a file swapped for a FIFO after the look above would hang the open.
        file = os.fdopen(os.open(path, _READ), "rb")
    except OSError as error:
        kind = NotThere if isinstance(error, FileNotFoundError | NotADirectoryError) else BadInput
        raise kind(f"{path}: {error.strerror or error}") from None
    except BadInput:  # a ValueError itself
        raise
    except ValueError as error:  # an embedded null byte
        raise BadInput(f"{quoted(str(path))} is no path: {error}", code="bad-value") from None
    status = os.fstat(file.fileno())
    try:
        _refuse_others(path, status)
        if status.st_size == 0:
            raise BadInput(f"{path} is empty", code="truncated")
    except BadInput:
        file.close()
        raise
    return file, status.st_size


def _refuse_others(path: Location, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        folder = stat.S_ISDIR(status.st_mode)
        raise BadInput(
            f"{path} is {'a folder, expected a file' if folder else 'not a regular file'}", code="unreadable"
        )


def read_all_of(file: BinaryIO, length: int) -> bytes:
    """`length` bytes from the file's position. `BadInput` where the file became shorter since it was opened."""
    content = file.read(length)
    if len(content) < length:
        raise BadInput("the file became shorter while it was read", code="changed")
    return content


def refuse_pointer(path: Location, start: bytes) -> None:
    """A clone without Git LFS holds a small text file where the real one should be."""
    if start.startswith(LFS_POINTER):
        raise BadInput(
            f"{path} is a Git LFS pointer, not the file itself: run `git lfs pull` in its folder", code="incomplete"
        )
