"""Turn any exception into one line for the user, on the command line and the web page."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from tallystick.errors import BadInput, visible
from tallystick.extras import missing_line

if TYPE_CHECKING:
    from traceback import FrameSummary

TRACEBACK = "TALLYSTICK_TRACEBACK"  # environment variable: set it to show the traceback too
FOLDER_IS_GONE = "the current folder was removed: change to one that exists"
LONGEST = 300  # most characters of an exception's own message
_OURS = os.path.dirname(__file__) + os.sep


def line_of(error: BaseException) -> str:
    """Return the line that says what happened and how to fix it.

    >>> line_of(BadInput("config.json is empty")), line_of(RecursionError())
    ('config.json is empty', 'the input is nested too deeply')
    """
    known = error.line if isinstance(error, BadInput) else missing_line(error, "this")
    if known is not None:
        return known
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
        return "this needs too much memory"
    if isinstance(error, RecursionError):
        return "the input is nested too deeply"
    if isinstance(error, OSError) and error.strerror:
        return _of_system(error)
    what = _what(error)
    if theirs := _last_of_user(error):
        return f"{what}{_at(theirs)}"
    ours = [frame for frame in _frames(error) if frame.filename.startswith(_OURS)]
    return f"this is a bug in tallystick: {what}{_at(ours[-1:])}; {TRACEBACK}=1 shows the traceback to report"


def traceback_of(error: BaseException) -> str:
    """Return the traceback if the user requested it, else an empty string."""
    if not os.environ.get(TRACEBACK):
        return ""
    from traceback import format_exception

    return "".join(format_exception(error))


def described(error: BaseException) -> str:
    """Return one line for an error of the user's own code: its type, message and location."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{type(error).__name__}: {error.msg} ({error.filename}, line {error.lineno})"
    return f"{_what(error)}{_at(_last_of_user(error))}"


def _what(error: BaseException) -> str:
    try:
        text = " ".join(str(error).split())
    except Exception:  # an exception class of the user
        text = "(it cannot be shown)"
    text = text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
    return visible(f"{type(error).__name__}: {text}" if text else type(error).__name__)


def _last_of_user(error: BaseException) -> list[FrameSummary]:
    """Return the last frame in the user's code: not in this package or an installed library."""
    from sysconfig import get_path

    others = ("<frozen ", _OURS, *{get_path("stdlib"), get_path("purelib"), get_path("platlib")})
    return [frame for frame in _frames(error) if not frame.filename.startswith(others)][-1:]


def _frames(error: BaseException) -> list[FrameSummary]:
    from traceback import extract_tb  # each run would wait for it

    return list(extract_tb(error.__traceback__))


def _at(frames: list[FrameSummary]) -> str:
    return f" ({frames[0].filename.removeprefix(_OURS)}, line {frames[0].lineno})" if frames else ""


def _of_system(error: OSError) -> str:
    try:
        os.getcwd()
    except OSError:
        return FOLDER_IS_GONE
    return visible(f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror))
