"""Seal off code: no network, no programs, no file writes, only installed files read or run.

transformers builds a model from whatever a config says. Some keys make it contact the hub, read
another file, or run code next to the config. Python announces each such step to its audit hooks
first; our hook refuses them.
"""

from __future__ import annotations

import os
import sys
import sysconfig
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from types import CodeType
from typing import Any

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_TRUNC
# Events that only look something up on this machine.
_HARMLESS = frozenset({"socket.gethostname"})
_PROGRAMS = frozenset(
    {"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty", "os.startfile"}
)
_CHANGES = frozenset(
    {"os.chmod", "os.chown", "os.link", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.symlink", "os.truncate"}
)


class Refused(BaseException):
    """A step that sealed code may not take.

    Not an Exception, so error handlers do not mistake it for a missing file.
    """


def seal() -> None:
    """Seal off this process until it ends."""
    _add_hook()
    _Seal.always = sys.dont_write_bytecode = True


@contextmanager
def sealed() -> Iterator[None]:
    """Seal off this thread within the block.

    Until the block ends, no thread writes the bytecode of what it imports: packages installed
    without it, as uv does, are imported all the same.

    Raises:
        Refused: at the first step that is not allowed.
    """
    _add_hook()
    before, writes_none = _seal.on, sys.dont_write_bytecode
    _seal.on = sys.dont_write_bytecode = True
    try:
        yield
    finally:
        _seal.on, sys.dont_write_bytecode = before, writes_none


class _Seal(threading.local):
    always = False  # class attribute: for all threads
    on = False


_seal = _Seal()


@cache  # an audit hook cannot be removed
def _add_hook() -> None:
    _roots(), _temporary()  # cached before anything is refused
    sys.addaudithook(_audit)


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if not (_seal.on or _seal.always):
        return
    if check := _CHECKS.get(event):
        check(*arguments)
    elif event.startswith("socket.") and event not in _HARMLESS:
        raise Refused("reach the network")
    elif event in _PROGRAMS:
        raise Refused("start a program")
    elif event in _CHANGES:
        _change(*arguments)


def _open(path: Any, _: Any, flags: Any) -> None:
    if isinstance(flags, int) and flags & _WRITING:
        _change(path)
    elif not _below(path, (*_roots(), *_temporary())):
        raise Refused(f"read {_named(path)}")


def _change(*paths: Any) -> None:
    for path in paths[:2]:  # a link or rename has two paths
        if not _below(path, _temporary()):
            raise Refused(f"write {_named(path)}")


def _run(code: Any) -> None:
    # Code without a file, such as a dataclass's methods, was made by an allowed module.
    if isinstance(code, CodeType) and os.path.isabs(code.co_filename) and not _below(code.co_filename, _roots()):
        raise Refused(f"run {_named(code.co_filename)}")


def _load(_: Any, path: Any = None, *__: Any) -> None:
    if path is not None and not _below(path, _roots()):
        raise Refused(f"load {_named(path)}")


def _ask(*_: Any) -> None:
    raise Refused("ask on the terminal")


_CHECKS: dict[str, Callable[..., None]] = {"open": _open, "exec": _run, "import": _load, "builtins.input": _ask}


def _below(path: Any, roots: tuple[str, ...]) -> bool:
    """Return whether a path is below one of the folders; descriptors were checked when opened."""
    if not isinstance(path, str | bytes | os.PathLike):
        return True
    return os.path.normcase(os.path.abspath(os.fsdecode(path)) + os.sep).startswith(roots)


@cache
def _temporary() -> tuple[str, ...]:
    # Windows has its null device at an absolute path, and ignores the case of paths.
    return tuple(map(os.path.normcase, (os.path.join(tempfile.gettempdir(), ""), os.path.abspath(os.devnull))))


@cache
def _roots() -> tuple[str, ...]:
    """Return the folders of installed packages, and system information such as ``/proc/``.

    The current folder and its parents are left out unless Python is installed there: they may hold
    untrusted files.
    """
    here = os.path.join(current_folder(), "")
    packages = {name.partition(".")[0] for name in sys.modules} - {"__main__"}
    files = filter(None, (getattr(sys.modules.get(package), "__file__", None) for package in packages))
    found = {os.path.abspath(folder) for folder in (*map(os.path.dirname, files), *filter(os.path.isabs, sys.path))}
    installed = {*sysconfig.get_paths().values(), sys.prefix, sys.base_prefix}
    folders = sorted(installed | {folder for folder in found if not here.startswith(os.path.join(folder, ""))})
    return (*(os.path.normcase(os.path.join(folder, "")) for folder in folders), "/proc/", "/sys/", "/dev/urandom")


def current_folder() -> str:
    """Return the current folder; the root if the current folder was removed."""
    try:
        return os.getcwd()
    except OSError:
        return os.sep


def _named(path: Any) -> str:
    return os.path.basename(os.fsdecode(path)) or os.fsdecode(path)
