"""Write files and folders that get their names only when they are complete.

Each is written under a hidden name in the same folder, ``.NAME.XXXXXXXX.partial``, and renamed
when it is complete. A killed process leaves only that hidden file or folder. The next process that
writes NAME removes it. A lock shows whether the process that created it still runs; the operating
system releases the lock however that process ends.
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
except ImportError:  # Windows: leftovers of a killed process stay
    fcntl = None  # type: ignore[assignment]

_LONGEST = 50  # characters of a name kept in the hidden name, which may have 255 bytes


@contextmanager
def atomic_folder(out: Path, *, replace: bool = False, parents: bool = False) -> Iterator[Path]:
    """Yield a new folder to write into; rename it to `out` at the end, or remove it on an error.

    Args:
        out: the final path.
        replace: exchange an existing folder for the new one, in one step if the file system can.
        parents: create missing parent folders.

    Raises:
        BadInput: if `out` exists and `replace` is false, or the disk refuses.
    """
    _refuse(out, replace=replace)
    partial = None
    try:
        if parents:
            out.absolute().parent.mkdir(parents=True, exist_ok=True)
        _recover(out)
        partial, lock = _new_folder(out)
        try:
            yield partial
            _flush(partial)
            _take_name(partial, out, replace=replace)
        finally:
            os.close(lock)
    except (OSError, shutil.Error) as error:
        raise _unwritten(out, error) from None
    finally:
        if partial is not None:
            _remove(partial)


def write_file(path: Path, content: bytes | Iterable[bytes]) -> None:
    """Write a file from one or several pieces, or replace it, in one step.

    Args:
        path: the final path.
        content: the bytes, or an iterable of pieces.

    Raises:
        BadInput: if the disk refuses. An existing file is then untouched.
    """
    _refuse(path, replace=True)
    partial = None
    try:
        _recover(path)
        partial = _hidden(path)
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
        with os.fdopen(descriptor, "wb") as file:
            _lock(file.fileno())
            file.writelines([content] if isinstance(content, bytes) else content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except OSError as error:
        raise _unwritten(path, error) from None
    finally:
        if partial is not None:
            partial.unlink(missing_ok=True)


def _refuse(out: Path, *, replace: bool) -> None:
    try:
        os.lstat(out)
    except FileNotFoundError:
        return
    except OSError as error:  # a name that is too long, or a file in place of a folder
        raise _unwritten(out, error) from None
    except ValueError as error:  # an embedded null byte
        raise BadInput(f"{quoted(str(out))} is no path: {error}", code="bad-value") from None
    if not replace:
        raise BadInput(f"{out} exists already, and is not overwritten", code="unwritable")


def _unwritten(path: Path, error: OSError) -> BadInput:
    return BadInput(f"{path} could not be written: {error.strerror or error}", code="unwritable")


# -- hidden names, and leftovers of killed processes ----------------------------------------------


def _stem(out: Path) -> str:
    name = out.absolute().name
    return f".{name}" if len(name) <= _LONGEST else f".{name[:_LONGEST]}~{crc32(os.fsencode(name)):08x}"


def _hidden(out: Path) -> Path:
    return out.absolute().with_name(f"{_stem(out)}.{secrets.token_hex(4)}.partial")


def _new_folder(out: Path) -> tuple[Path, int]:
    """Return a new folder with a hidden name, and the descriptor that holds its lock."""
    while True:
        partial = _hidden(out)
        partial.mkdir()
        with suppress(FileNotFoundError):  # removed by another process before it was locked
            lock = os.open(partial, os.O_RDONLY) if fcntl else os.open(os.devnull, os.O_RDONLY)
            if not fcntl or (_lock(lock) and os.path.lexists(partial)):
                return partial, lock
            os.close(lock)


def _lock(descriptor: int) -> bool:
    """Lock an open file, and return False if another process holds its lock.

    Return True if the file system has no locks.
    """
    if fcntl:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            return True
    return True


def _recover(out: Path) -> None:
    """Remove leftovers of killed processes for `out`; restore a folder that one had moved away."""
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
    """Remove a folder, also with subfolders that lack write permission."""
    with suppress(OSError):
        for inside, _, _ in os.walk(folder):
            os.chmod(inside, 0o700)
    shutil.rmtree(folder, ignore_errors=True)


# -- the final name -------------------------------------------------------------------------------


def _flush(folder: Path) -> None:
    """Flush all files to disk before the rename, so that a power cut cannot lose their content."""
    for inside, _, names in os.walk(folder):
        files = [path for name in names if stat.S_ISREG(os.lstat(path := os.path.join(inside, name)).st_mode)]
        for path in (*files, inside):
            flush_to_disk(path)


def flush_to_disk(path: str | os.PathLike[str]) -> None:
    """Flush a file or folder to the disk, so that a later rename cannot come first.

    Nothing is done on a system that opens no folders, or for a file without permission.

    Args:
        path: the file or folder.
    """
    with suppress(PermissionError):
        # Windows flushes no file that is open for reading only.
        descriptor = os.open(path, os.O_RDWR if sys.platform == "win32" else os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _take_name(partial: Path, out: Path, *, replace: bool) -> None:
    _refuse(out, replace=replace)  # again: writing took time
    if not os.path.lexists(out):
        partial.rename(out)
    elif not _exchanged(partial, out):
        old = partial.with_suffix(".old")
        out.rename(old)
        try:
            partial.rename(out)
        except BaseException:
            old.rename(out)
            raise
        _remove(old)


def _exchanged(one: Path, other: Path) -> bool:
    """Exchange two names in one step; return False if the system or file system cannot."""
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
