"""Work that is killed before each of its steps on the disk in turn, by SIGKILL, in a process of its
own each time.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

# What changes a folder, as Python's audit events call it; a symbol looked up is an exchange of two
# names about to be.
CHANGES = {
    "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.chmod", "os.utime", "os.link", "os.symlink", "shutil.rmtree",
    "ctypes.dlsym",
}  # fmt: skip


def killed_at_each_step(work: Callable[[], object], folder: Path) -> Iterator[int]:
    """Number each step of some work in a folder, after a process that was killed before it; the
    last is never reached.
    """
    for step in count(1):
        if _ends(lambda step=step: (sys.addaudithook(_killer(step, folder)), work())):
            return
        yield step


def done_apart(work: Callable[[], object]) -> None:
    """Do some work in a process of its own, to its end."""
    assert _ends(work)


def _ends(work: Callable[[], object]) -> bool:
    """Whether work in a process of its own comes to its end, and is not killed."""
    process = os.fork()
    if not process:
        try:
            work()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    _, status = os.waitpid(process, 0)
    assert status in (0, signal.SIGKILL), status
    return status == 0


def _killer(step: int, folder: Path) -> Callable[[str, tuple[object, ...]], None]:
    left = step

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal left
        opened = event == "open" and str(arguments[0]).startswith(str(folder))
        if opened or event in CHANGES:
            left -= 1
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)

    return hook
