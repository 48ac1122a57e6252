"""Lock a run's folder for one process, with an operating system lock.

    run/.lock       process and host of the holder, time of the lock

The kernel releases the lock when the process ends, also after `kill -9`. The file alone locks
nothing: a file left by a killed run is taken over. Commands that only read take no lock.
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
_LARGEST = 4096  # bytes: a holder's entry is cut to this
_TRIES = 100  # an ending holder may remove the file between open and lock
_BUSY = (errno.EAGAIN, errno.EACCES)  # errors of flock on a locked file; other errors: no locks here


@dataclass
class _Holder:
    """A folder that this process holds."""

    process: int  # a forked child inherits this table, but holds nothing
    descriptor: int  # of the lock file
    times: int = 0


_held: dict[str, _Holder] = {}  # by folder


@contextmanager
def locked(folder: Path) -> Iterator[str]:
    """Lock a folder, creating it if needed. Several runs of one process may share the lock.

    Yields:
        Why the folder is not locked, if the system or disk has no locks; else "".

    Raises:
        BadInput: if another process holds the lock (names process, host and time), or the
            folder is not writable.
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
        path.unlink()  # removed while locked: the next holder sees that its file has no name and retries
    os.close(holder.descriptor)


def _taken(folder: Path) -> tuple[int | None, str]:
    """Return the descriptor of the locked file; or None, and why there is no lock."""
    if fcntl is None:
        return None, f"{folder} is not locked (this system has no flock): do not start a second run in it"
    path = folder / NAME
    for _ in range(_TRIES):
        descriptor = _opened(path)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = _holder(descriptor)
            os.close(descriptor)
            if error.errno not in _BUSY:
                return None, (
                    f"{folder} is not locked (its disk does not support it: {error.strerror}): do not start a second"
                    " run in it"
                )
            raise BadInput(
                f"{folder} is in use by {holder}: wait for that run, stop it, or choose another out",
                code="unwritable",
            ) from None
        if _is_named(descriptor, path):
            _sign(descriptor)
            return descriptor, ""
        os.close(descriptor)
    raise BadInput(f"{folder} is in use by other runs", code="unwritable")


def _opened(path: Path) -> int:
    """Open the lock file, or create it; do not follow links or wait for pipes."""
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, flags, 0o666)
    except OSError as error:
        if path.is_symlink() or path.is_dir():
            raise BadInput(f"{path} is not a regular file: remove it", code="unwritable") from None
        raise BadInput(f"{path.parent} cannot be written: {error.strerror or error}", code="unwritable") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise BadInput(f"{path} is not a regular file: remove it", code="unwritable")
    return descriptor


def _is_named(descriptor: int, path: Path) -> bool:
    """Return whether the file still has its name: an ending holder may have removed it."""
    try:
        named = path.stat(follow_symlinks=False)
    except OSError:
        return False
    return os.path.samestat(named, os.fstat(descriptor))


def _sign(descriptor: int) -> None:
    """Write the holder into the file; if the disk is full, the lock holds without it."""
    since = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
    said = json.dumps({"process": os.getpid(), "host": socket.gethostname(), "since": since})
    with suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, said.encode()[:_LARGEST], 0)


def _holder(descriptor: int) -> str:
    """Return the holder in words; the file's content is not trusted."""
    try:
        said = json.loads(os.pread(descriptor, _LARGEST, 0))
        process, host, since = (said[key] for key in ("process", "host", "since"))
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return "another process"
    return f"process {quoted(process)} on {quoted(host)} since {quoted(since)}"
