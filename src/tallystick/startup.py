"""What a process that runs as the command does first: it opens its standard streams, and says how Ctrl-C ends it.

It is imported before anything else and imports only what Python has loaded by then: until `prepare` is called,
Ctrl-C ends the process with a traceback.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # typing takes longer to import than all of this
if TYPE_CHECKING:
    from sys import UnraisableHookArgs
    from types import FrameType, TracebackType
    from typing import NoReturn

FAILED = 2  # there is no answer
INTERRUPTED = 130  # as shells have it: 128 and the number of SIGINT

_interrupts: list[int] = []  # the signals that came


def is_command() -> bool:
    """Whether this process is ``tallystick`` or ``python -m tallystick``, and not a program that imports it."""
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

    # Where SIGINT is ignored, as in a background job of a shell, it stays ignored.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)


def interrupted() -> bool:
    """Whether Ctrl-C came, whatever exception it became: C code that imports a module makes others of it."""
    return bool(_interrupts)


def leave(code: int) -> NoReturn:
    """End with an exit code at once: Python ends by the signal itself where an interrupt came in an ``exec`` of words."""
    os._exit(code)


def _occupy(number: int) -> None:
    """Open the null device in the place of a closed standard stream: the next file to be opened would take that place."""
    try:
        os.fstat(number)
    except OSError:
        os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest free number, so this one


def _interrupt(number: int, _: FrameType | None) -> None:
    _interrupts.append(number)
    raise KeyboardInterrupt


def _end(kind: type[BaseException], error: BaseException, _: TracebackType | None) -> NoReturn:
    """End on what `main` did not catch: an interrupt outside of it, or too little memory to import it."""
    stopped = interrupted() or issubclass(kind, KeyboardInterrupt)
    what = "interrupted" if stopped else f"cannot start: {kind.__name__}: {' '.join(str(error).split())[:300]}"
    try:
        os.write(2, f"tallystick: {what}\n".encode(errors="backslashreplace"))
    finally:
        leave(INTERRUPTED if stopped else FAILED)


def _unraisable(event: UnraisableHookArgs) -> None:
    """End on an interrupt that Python would drop, because it came in a destructor or as the process ends."""
    if issubclass(event.exc_type, KeyboardInterrupt):
        _end(event.exc_type, KeyboardInterrupt(), None)
    sys.__unraisablehook__(event)
