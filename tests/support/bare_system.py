"""What Windows lacks, taken away from this process: modules, calls, flags, signals.

``python bare_system.py WORDS...`` imports every file of the package that needs no library, then
runs the command in what is left.
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import os
import pkgutil
import signal
import sys

MODULES = ("fcntl", "grp", "pty", "pwd", "readline", "resource", "termios", "tty")
CALLS = ("chown", "fork", "forkpty", "getpgid", "getuid", "geteuid", "killpg", "mkfifo", "nice", "posix_fadvise", "posix_spawn",
         "pread", "pwrite", "sched_getaffinity", "setsid", "statvfs", "sysconf", "uname", "wait4", "waitid")  # fmt: skip
FLAGS = ("O_CLOEXEC", "O_DIRECTORY", "O_DSYNC", "O_NOCTTY", "O_NOFOLLOW", "O_NONBLOCK", "O_SYNC")
SIGNALS = ("SIGALRM", "SIGHUP", "SIGKILL", "SIGPIPE", "SIGUSR1", "SIGXCPU", "SIGXFSZ")
LIBRARIES = ("torch", "transformers", "safetensors", "tokenizers", "numpy", "starlette", "uvicorn")


def strip() -> None:
    """Take it away, after the standard library's own modules have looked."""
    for name in ("asyncio", "multiprocessing.connection", "shutil", "subprocess", "tempfile", "webbrowser"):
        importlib.import_module(name)
    for name in (*MODULES, *LIBRARIES):
        sys.modules[name] = None  # type: ignore[assignment]
    for holder, names in ((os, (*CALLS, *FLAGS)), (signal, SIGNALS)):
        for name in names:
            with contextlib.suppress(AttributeError):
                delattr(holder, name)
    os.supports_dir_fd.clear()
    os.supports_fd.clear()
    os.open = opened(os.open)


def opened(really):
    """An ``os.open`` that opens no folder."""

    def to_open(path, flags, *rest, **more):
        if os.path.isdir(path):
            raise PermissionError(errno.EACCES, "a folder")
        return really(path, flags, *rest, **more)

    return to_open


def flushed(really):
    """An ``os.fsync`` of what is open for writing alone."""

    def to_flush(descriptor):
        try:
            os.write(descriptor, b"")  # refused where the file is open for reading only
        except OSError:
            raise OSError(errno.EBADF, "open for reading only") from None
        really(descriptor)

    return to_flush


def imported() -> list[str]:
    """The package's files that could be imported, all but those that need a library."""
    import tallystick

    found = []
    for one in pkgutil.walk_packages(tallystick.__path__, "tallystick.", onerror=lambda _: None):
        if one.name.endswith("__main__"):
            continue
        try:
            importlib.import_module(one.name)
        except ImportError as error:
            if (error.name or "").partition(".")[0] not in LIBRARIES and "pip install" not in str(error):
                raise
            continue
        found.append(one.name)
    return found


if __name__ == "__main__":
    strip()
    if sys.argv[1:] == ["imports"]:
        sys.stdout.write("\n".join(imported()))
    else:
        from tallystick.cli.main import main

        sys.exit(main(sys.argv[1:]))
