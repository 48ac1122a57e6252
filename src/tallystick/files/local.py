"""Open regular files of known size; refuse pipes, devices and Git LFS pointers."""

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
_START = 32  # bytes that identify each format, and a pointer


class OpenFile(NamedTuple):
    """A file opened at its beginning, passed to its reader, which does not open it again."""

    path: Location
    stream: BufferedReader
    size: int  # in bytes
    start: bytes  # its first bytes


@contextmanager
def opened(path: Location) -> Iterator[OpenFile]:
    """Open a regular file for reading, local or remote.

    Raises:
        BadInput: if it cannot be opened, or is a Git LFS pointer.
    """
    stream, size = open_regular(path)
    with stream:
        start = stream.read(_START)
        refuse_pointer(path, start)
        stream.seek(0)
        yield OpenFile(path, stream, size, start)


def here(path: Location) -> Path:
    """Return the path of a local file.

    Formats that must be read in many places call this.

    Raises:
        BadInput: if the file is remote.
    """
    if isinstance(path, Remote):
        raise BadInput(f"{path}: this format is read only from local files: download it", code="malformed")
    return path


def exists(path: Location) -> bool | None:
    """Return whether a file or folder exists; None if only opening it can tell.

    Never raises: `Path.exists` does for a name that is too long.
    """
    return path.exists() if isinstance(path, Remote) else os.path.exists(path)


def open_regular(path: Location) -> tuple[BufferedReader, int]:
    """Open a file for reading; return it and its size in bytes.

    Raises:
        BadInput: if it cannot be opened, is empty, or is a pipe, device or folder.
    """
    if isinstance(path, Remote):
        return path.open()
    try:
        # Checked before it is opened, since opening some devices has effects; and again once open.
        _refuse_others(path, path.stat())
        # Without O_NONBLOCK, opening would hang if the file was swapped for a FIFO after that
        # check.
        file = os.fdopen(os.open(path, _READ), "rb")
    except OSError as error:
        kind = NotThere if isinstance(error, FileNotFoundError | NotADirectoryError) else BadInput
        raise kind(f"{path}: {error.strerror or error}") from None
    except BadInput:  # is a ValueError itself
        raise
    except ValueError as error:  # an embedded null byte
        raise BadInput(f"{quoted(str(path))} is not a path: {error}", code="bad-value") from None
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
    """Read `length` bytes from the file's position.

    Raises:
        BadInput: if the file became shorter since it was opened.
    """
    content = file.read(length)
    if len(content) < length:
        raise BadInput("the file shrank while it was read", code="changed")
    return content


def refuse_pointer(path: Location, start: bytes) -> None:
    """Raise `BadInput` for a Git LFS pointer.

    A clone without Git LFS holds such a small text file in place of the real one.
    """
    if start.startswith(LFS_POINTER):
        raise BadInput(
            f"{path} is a Git LFS pointer, not the file itself: run `git lfs pull` in its folder", code="incomplete"
        )
