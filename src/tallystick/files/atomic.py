"""Folders and files that appear under their names when they are whole, and never before.

Each is written under a hidden name in the same folder, ``.NAME.XXXXXXXX.partial``, and renamed when it is whole. A
process that is killed leaves at most that. The next one that writes NAME removes it: a lock on it shows whether
its own process still runs, and the system drops that lock however a process ends.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from zlib import crc32

from tallystick.errors import BadInput, quoted

try:
    import fcntl
except ImportError:  # Windows: what a killed process left is not removed
    fcntl = None  # type: ignore[assignment]

_LONGEST = 50  # characters of a name that are repeated in a hidden one, which may have 255 bytes


@contextmanager
def atomic_folder(out: Path, *, replace: bool = False, parents: bool = False) -> Iterator[Path]:
    """A new folder to write into, which takes the name `out` at the end; after any error nothing of it is left.

    With `replace` a folder of that name is exchanged for the new one in one step, where the file system can do that.
    With `parents` the folders above it are made too.

    Raises:
        BadInput: when `out` exists and is not to be replaced, and what a disk refuses.
    """
    _refuse(out, replace=replace)
    beside = None
    try:
        if parents:
            out.absolute().parent.mkdir(parents=True, exist_ok=True)
        _recover(out)
        beside, lock = _new_folder(out)
        try:
            yield beside
            _flush(beside)
            _take_name(beside, out, replace=replace)
        finally:
            os.close(lock)
    except (OSError, shutil.Error) as error:
        raise _unwritten(out, error) from None
    finally:
        if beside is not None:
            _remove(beside)


def write_file(path: Path, content: bytes | Iterable[bytes]) -> None:
    """Write a file, in one piece or in several, or replace it in one step.

    Raises:
        BadInput: what a disk refuses; a file of that name is then untouched.
    """
    _refuse(path, replace=True)
    beside = None
    try:
        _recover(path)
        beside = _hidden(path)
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
        with os.fdopen(descriptor, "wb") as file:
            _lock(file.fileno())
            file.writelines([content] if isinstance(content, bytes) else content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except OSError as error:
        raise _unwritten(path, error) from None
    finally:
        if beside is not None:
            beside.unlink(missing_ok=True)


def _refuse(out: Path, *, replace: bool) -> None:
    try:
        os.lstat(out)
    except FileNotFoundError:
        return
    except OSError as error:  # a name that is too long, a file where a folder should be
        raise _unwritten(out, error) from None
    except ValueError as error:  # an embedded null byte
        raise BadInput(f"{quoted(str(out))} is no path: {error}", code="bad-value") from None
    if not replace:
        raise BadInput(f"{out} exists already, and is not overwritten", code="unwritable")


def _unwritten(path: Path, error: OSError) -> BadInput:
    return BadInput(f"{path} could not be written: {error.strerror or error}", code="unwritable")


# -- hidden names, and what a killed process left under them --------------------------------------


def _stem(out: Path) -> str:
    name = out.absolute().name
    return f".{name}" if len(name) <= _LONGEST else f".{name[:_LONGEST]}~{crc32(os.fsencode(name)):08x}"


def _hidden(out: Path) -> Path:
    return out.absolute().with_name(f"{_stem(out)}.{secrets.token_hex(4)}.partial")


def _new_folder(out: Path) -> tuple[Path, int]:
    """A folder under a hidden name, and the descriptor that holds its lock."""
    while True:
        beside = _hidden(out)
        beside.mkdir()
        with suppress(FileNotFoundError):  # removed by another process before it was locked
            lock = os.open(beside, os.O_RDONLY) if fcntl else os.open(os.devnull, os.O_RDONLY)
            if not fcntl or (_lock(lock) and os.path.lexists(beside)):
                return beside, lock
            os.close(lock)


def _lock(descriptor: int) -> bool:
    """Whether nobody else holds the lock of an open file; true too where the file system has no locks."""
    if fcntl:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            return True
    return True


def _recover(out: Path) -> None:
    """Remove what killed processes left of `out`; a folder that one of them had moved away gets its name back."""
    left = re.compile(rf"{re.escape(_stem(out))}\.[0-9a-f]{{8}}\.(?:partial|old)")
    if not fcntl:
        return
    found: list[Path] = []
    with suppress(PermissionError), os.scandir(out.absolute().parent) as entries:
        found = [Path(entry.path) for entry in entries if left.fullmatch(entry.name)]
    for path in found:
        with suppress(OSError):
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if path.suffix == ".old" and not os.path.lexists(out):
                    path.rename(out)
                elif stat.S_ISDIR(os.fstat(descriptor).st_mode):
                    _remove(path)
                else:
                    path.unlink()
            finally:
                os.close(descriptor)


def _remove(folder: Path) -> None:
    """Remove a folder, folders without write permission in it too."""
    with suppress(OSError):
        for inside, _, _ in os.walk(folder):
            os.chmod(inside, 0o700)
    shutil.rmtree(folder, ignore_errors=True)


# -- a name taken ---------------------------------------------------------------------------------


def _flush(folder: Path) -> None:
    """Have the disk hold all that was written: a name must not stand for bytes that a power cut can lose."""
    for inside, _, names in os.walk(folder):
        files = [path for name in names if stat.S_ISREG(os.lstat(path := os.path.join(inside, name)).st_mode)]
        for path in (*files, inside):
            with suppress(PermissionError):  # a folder where the system opens none; a file that may not be read
                descriptor = os.open(path, os.O_RDONLY)
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)


def _take_name(beside: Path, out: Path, *, replace: bool) -> None:
    _refuse(out, replace=replace)  # again: the writing took its time
    if not os.path.lexists(out):
        beside.rename(out)
    elif not _exchanged(beside, out):
        old = beside.with_suffix(".old")
        out.rename(old)
        try:
            beside.rename(out)
        except BaseException:
            old.rename(out)
            raise
        _remove(old)


def _exchanged(one: Path, other: Path) -> bool:
    """Whether two names were exchanged in one step, which not every system and file system can do."""
    import ctypes

    first, second = os.fsencode(one.absolute()), os.fsencode(other.absolute())
    try:
        library = ctypes.CDLL(None)
        if sys.platform == "darwin":
            return bool(library.renamex_np(first, second, 2) == 0)  # RENAME_SWAP
        here = -100  # AT_FDCWD
        return bool(library.renameat2(here, first, here, second, 2) == 0)  # RENAME_EXCHANGE
    except (AttributeError, OSError, TypeError):  # no such call; Windows has no library of that name
        return False
