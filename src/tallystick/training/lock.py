"""One run at a time in a folder: a lock of the operating system, which ends with the process that holds it.

    run/.lock       who holds it: process, host, since when

The kernel releases the lock when the process ends, also after `kill -9`. The file alone locks nothing: one that a killed
run left is taken over. Commands that only read take no lock.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tallystick.errors import BadInput, quoted

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

NAME = ".lock"
_LARGEST = 4096  # bytes that a holder writes at most
_TRIES = 100  # a holder that ends may remove the file between our opening and locking it
_BUSY = (errno.EAGAIN, errno.EACCES)  # what flock says of a file that is locked; other errors say that it cannot lock


@dataclass
class _Holder:
    """A process of ours that holds a folder."""

    process: int  # a forked process inherits this table, but holds nothing
    descriptor: int  # of the lock's file
    times: int = 0


_held: dict[str, _Holder] = {}  # by folder


@contextmanager
def locked(folder: Path) -> Iterator[str]:
    """Hold a folder, which is made where it is missing. A second run of the same process may enter too.

    Yields:
        Why nothing is locked, where the system or the disk has no locks; "" where it is.

    Raises:
        BadInput: where another process holds it, with its number, host and since when; where it cannot be written.
    """
    key = os.path.realpath(folder)
    holder = _held.get(key)
    if holder is None or holder.process != os.getpid():
        descriptor, why_not = _taken(folder)
        if descriptor is None:
            yield why_not
            return
        holder = _held[key] = _Holder(os.getpid(), descriptor)
    holder.times += 1
    try:
        yield ""
    finally:
        _leave(key, holder, folder / NAME)


def _leave(key: str, holder: _Holder, path: Path) -> None:
    holder.times -= 1
    if holder.times or holder.process != os.getpid():
        return
    del _held[key]
    with suppress(OSError):
        path.unlink()  # while it is still locked: whoever locks it afterwards sees that it has no name any more
    os.close(holder.descriptor)


def _taken(folder: Path) -> tuple[int | None, str]:
    """The file that is locked now; or None, and why there is no lock."""
    if fcntl is None:
        return None, f"{folder} is not locked, this system has no flock: start no second run in it"
    path = folder / NAME
    for _ in range(_TRIES):
        descriptor = _opened(path)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = _holder(descriptor)
            os.close(descriptor)
            if error.errno not in _BUSY:
                return None, f"{folder} is not locked, its disk cannot ({error.strerror}): start no second run in it"
            raise BadInput(
                f"{folder} is in use by {holder}: wait until that run has ended, stop it, or name another out",
                code="unwritable",
            ) from None
        if _is_named(descriptor, path):
            _sign(descriptor)
            return descriptor, ""
        os.close(descriptor)
    raise BadInput(f"{folder} is in use: other runs begin and end in it", code="unwritable")


def _opened(path: Path) -> int:
    """The lock's file, made where it is missing; neither a link is followed nor a pipe waited for."""
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, flags, 0o666)
    except OSError as error:
        if path.is_symlink() or path.is_dir():
            raise BadInput(f"{path} is no regular file: remove it", code="unwritable") from None
        raise BadInput(f"{path.parent} cannot be written: {error.strerror or error}", code="unwritable") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise BadInput(f"{path} is no regular file: remove it", code="unwritable")
    return descriptor


def _is_named(descriptor: int, path: Path) -> bool:
    """Whether the file still has its name: a holder that ended may have removed it."""
    try:
        named = path.stat(follow_symlinks=False)
    except OSError:
        return False
    return os.path.samestat(named, os.fstat(descriptor))


def _sign(descriptor: int) -> None:
    """Write who holds it; on a full disk the lock holds without a name."""
    since = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
    said = json.dumps({"process": os.getpid(), "host": socket.gethostname(), "since": since})
    with suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, said.encode()[:_LARGEST], 0)


def _holder(descriptor: int) -> str:
    """Who wrote the file, in words; it may hold anything."""
    try:
        said = json.loads(os.pread(descriptor, _LARGEST, 0))
        process, host, since = (said[key] for key in ("process", "host", "since"))
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return "another process"
    return f"process {quoted(process)} on {quoted(host)} since {quoted(since)}"
