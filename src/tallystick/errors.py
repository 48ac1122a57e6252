"""The one error that a user can cause, its code for programs, and the suggestion that goes with it."""

from collections.abc import Iterable
from typing import Literal, TypeAlias, get_args

LONGEST_NUMBER = 200  # bits of an integer that is shown
LONGEST_WORD = 100  # characters of a word that is compared with known ones, which takes their square

# What kind of error it is. docs/errors.md says when each is raised; codes are added to and never renamed.
Code: TypeAlias = Literal[
    # what was asked for
    "bad-value",
    "unknown-key",
    "unknown-name",
    "conflicting-options",
    "ambiguous",
    # where it should be
    "not-found",
    "unreadable",
    "unreachable",
    "changed",
    "unwritable",
    # what a file holds
    "unsupported",
    "malformed",
    "truncated",
    "overlap",
    "incomplete",
    "too-large",
    "unsafe",
    # what it means
    "not-a-config",
    "unknown-model-type",
    "mismatch",
    "indivisible",
    "cannot-tie",
    "no-answer",
    # what runs
    "missing-package",
    "user-code",
    # none of these
    "bad-input",
]
CODES: tuple[Code, ...] = get_args(Code)


class BadInput(ValueError):
    """What the user gave cannot be read or makes no sense.

    The message is one line in the user's own words: what is wrong, where, and what to do.
    The command line prints it after ``tallystick:`` and exits with 2. Programs read `code`, one of `CODES`.
    """

    code: Code = "bad-input"

    def __init__(self, message: str, *, code: Code | None = None) -> None:
        # A path or another library's error may hold line breaks, and what a terminal obeys.
        super().__init__(visible(message))
        if code is not None:
            self.code = code


def code_of(error: OSError) -> Code:
    """The code of a file that the system does not open.

    >>> code_of(FileNotFoundError()), code_of(PermissionError())
    ('not-found', 'unreadable')
    """
    return "not-found" if isinstance(error, FileNotFoundError | NotADirectoryError) else "unreadable"


def visible(text: str) -> str:
    r"""A text on one line, with nothing that a terminal obeys: characters that cannot be shown are escaped.

    >>> visible("wte\x1b[2J.weight")
    'wte\\x1b[2J.weight'
    """
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def nearest(word: str, known: Iterable[str], *, most: int = 3) -> str:
    """`"; nearest: gpt2, gpt2-xl"`, or `""` where nothing known looks like `word`."""
    from difflib import get_close_matches  # only a failing call pays for it

    if len(word) > LONGEST_WORD:
        return ""
    folded = {name.lower(): name for name in known}
    matches = get_close_matches(word.lower(), folded, n=most, cutoff=0.5)
    return f"; nearest: {', '.join(folded[match] for match in matches)}" if matches else ""


def shown(value: object, *, most: int = 60) -> str:
    """The user's own value as a message shows it: on one line, cut when long."""
    kinds: dict[type, str] = {str: "the string ", list: "the list ", dict: "the object "}
    kind = kinds.get(type(value), "")
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > LONGEST_NUMBER:
        return f"an integer of {value.bit_length()} bits"  # str() of it can be slow, or refused
    return kind + quoted(value, most=most)


def grouped(number: float) -> str:
    """A number of the user's files with its digits in threes, or how long it is where nobody would read them."""
    return shown(number) if isinstance(number, int) and number.bit_length() > LONGEST_NUMBER else f"{number:,}"


def quoted(value: object, *, most: int = 60) -> str:
    """A word of the user's files as a message quotes it: on one line, with nothing that a terminal obeys, cut when long."""
    try:
        text = repr(value)
    except (RecursionError, ValueError):  # JSON just shallow enough to be read; integers of thousands of digits
        return "(too deep or too long to show)"
    return text if len(text) <= most else text[: most - 1] + "…"
