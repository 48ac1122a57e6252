"""Set up the command's process: open its standard streams, and exit cleanly on Ctrl-C.

It is imported first and imports only modules that Python has already loaded. Until `prepare` is
called, Ctrl-C ends the process with a traceback.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # importing typing takes longer than all of this
if TYPE_CHECKING:
    from sys import UnraisableHookArgs
    from types import FrameType, TracebackType
    from typing import NoReturn

FAILED = 2  # there is no answer
INTERRUPTED = 130  # as shells report it: 128 plus the number of SIGINT

_interrupts: list[int] = []  # signals received


def is_command() -> bool:
    """Return whether this process runs the command, not a program that imports the package."""
    program = [*sys.argv, ""][0]
    if program == "-m":  # until Python has found the module
        words = zip(sys.orig_argv, sys.orig_argv[1:], strict=False)
        return any(option[0] == "-" and option[-1] == "m" and name == "tallystick" for option, name in words if option)
    return os.path.basename(program).removesuffix(".exe") == "tallystick"


def prepare() -> None:
    """Prepare this process; a second call does nothing."""
    if sys.excepthook is _end:
        return
    sys.excepthook, sys.unraisablehook = _end, _unraisable
    for number in (0, 1, 2):
        _occupy(number)
    import signal

    # If SIGINT is ignored, as in a background job of a shell, it stays ignored.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)
    import gc  # not before: until here an interrupt leaves a traceback

    # A short run makes many small objects and keeps most: frequent garbage collection is wasted.
    gc.set_threshold(1_000_000)


def interrupted() -> bool:
    """Return whether Ctrl-C was pressed; C code may turn `KeyboardInterrupt` into another error."""
    return bool(_interrupts)


def leave(code: int) -> NoReturn:
    """End the process at once with an exit code.

    A normal exit ends by the signal itself if the interrupt came during an ``exec`` of a string.
    """
    os._exit(code)


def _occupy(number: int) -> None:
    """Open the null device in place of a closed standard stream.

    Otherwise the next opened file would get that stream's number.
    """
    try:
        os.fstat(number)
    except OSError:
        os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest free number, which is this one


def _interrupt(number: int, _: FrameType | None) -> None:
    _interrupts.append(number)
    raise KeyboardInterrupt


def _end(kind: type[BaseException], error: BaseException, _: TracebackType | None) -> NoReturn:
    """End on an error outside of `main`: an interrupt, or too little memory for the imports."""
    stopped = interrupted() or issubclass(kind, KeyboardInterrupt)
    what = "interrupted" if stopped else f"cannot start: {kind.__name__}: {' '.join(str(error).split())[:300]}"
    try:
        os.write(2, f"tallystick: {what}\n".encode(errors="backslashreplace"))
    finally:
        leave(INTERRUPTED if stopped else FAILED)


def _unraisable(event: UnraisableHookArgs) -> None:
    """End on an interrupt that Python would drop: in a destructor, or during shutdown."""
    if issubclass(event.exc_type, KeyboardInterrupt):
        _end(event.exc_type, KeyboardInterrupt(), None)
    sys.__unraisablehook__(event)
