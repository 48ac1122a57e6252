"""The error class for bad user input, its codes, and helpers for its messages."""

from collections.abc import Iterable
from typing import Literal, TypeAlias, get_args

LONGEST_NUMBER = 200  # most bits of an integer that is shown in full
LONGEST_WORD = 100  # longest word compared with known ones, in characters: the time grows with the square

# Kind of error. docs/errors.md says when each is raised. Codes may be added, never renamed.
Code: TypeAlias = Literal[
    # the request
    "bad-value",
    "unknown-key",
    "unknown-name",
    "conflicting-options",
    "ambiguous",
    # the file or address
    "not-found",
    "unreadable",
    "unreachable",
    "changed",
    "unwritable",
    # the file's contents
    "unsupported",
    "malformed",
    "truncated",
    "overlap",
    "incomplete",
    "too-large",
    "unsafe",
    # their meaning
    "not-a-config",
    "unknown-model-type",
    "mismatch",
    "indivisible",
    "cannot-tie",
    "no-answer",
    # packages and user code
    "missing-package",
    "user-code",
    # none of these
    "bad-input",
]
CODES: tuple[Code, ...] = get_args(Code)
# Codes of errors in the arguments themselves, whatever a file holds.
REQUEST: tuple[Code, ...] = ("bad-value", "unknown-key", "unknown-name", "conflicting-options", "ambiguous")


class BadInput(ValueError):
    """Input that cannot be read or makes no sense.

    The message is one line in the user's own words: what is wrong, where, and how to fix it.
    The command line prints it after ``tallystick:`` and exits with 2. Programs read `code`, one
    of `CODES`.

    Args:
        message: the line. Line breaks and terminal control characters are escaped.
        code: one of `CODES`; None keeps the class's own, ``"bad-input"``.

    >>> error = BadInput("batch is 0, expected a positive integer", code="bad-value")
    >>> error.function = "memory"  # as the public functions set it
    >>> print(error)
    memory(): batch is 0, expected a positive integer
    >>> error.line, error.code
    ('batch is 0, expected a positive integer', 'bad-value')
    """

    code: Code = "bad-input"
    function: str = ""  # the public function whose arguments are wrong, or ""

    def __init__(self, message: str, *, code: Code | None = None) -> None:
        # A path or another library's error may hold line breaks and terminal control characters.
        super().__init__(visible(message))
        if code is not None:
            self.code = code

    @property
    def line(self) -> str:
        """The message without the name of the function."""
        return str(self.args[0])

    def __str__(self) -> str:
        return f"{self.function}(): {self.line}" if self.function else self.line


def code_of(error: OSError) -> Code:
    """Return the code for a file that the operating system does not open.

    >>> code_of(FileNotFoundError()), code_of(PermissionError())
    ('not-found', 'unreadable')
    """
    return "not-found" if isinstance(error, FileNotFoundError | NotADirectoryError) else "unreadable"


def visible(text: str) -> str:
    r"""Return a text on one line, with unprintable and terminal control characters escaped.

    >>> visible("wte\x1b[2J.weight")
    'wte\\x1b[2J.weight'
    """
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def nearest(word: str, known: Iterable[str], *, most: int = 3) -> str:
    """Return `"; nearest: gpt2, gpt2-xl"`, or `""` if no known word resembles `word`.

    Args:
        word: the user's word.
        known: the valid words.
        most: most words to suggest.
    """
    from difflib import get_close_matches  # imported only when a call fails

    if len(word) > LONGEST_WORD:
        return ""
    folded = {name.lower(): name for name in known}
    begun = [name for name in folded if word.lower().startswith(f"{name}-")]  # gpt2-small: gpt2
    close = get_close_matches(word.lower(), folded, n=most, cutoff=0.5)
    matches = list(dict.fromkeys([*sorted(begun, key=len, reverse=True), *close]))[:most]
    return f"; nearest: {', '.join(folded[match] for match in matches)}" if matches else ""


def shown(value: object, *, most: int = 60) -> str:
    """Return a user's value for a message: on one line, cut when long."""
    kinds: dict[type, str] = {str: "the string ", list: "the list ", dict: "the object "}
    kind = kinds.get(type(value), "")
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > LONGEST_NUMBER:
        return f"an integer of {value.bit_length()} bits"  # str() of it can be slow, or raise
    return kind + quoted(value, most=most)


def grouped(number: float) -> str:
    """Return a number with thousands separators; a very large integer by its number of bits."""
    return shown(number) if isinstance(number, int) and number.bit_length() > LONGEST_NUMBER else f"{number:,}"


def quoted(value: object, *, most: int = 60) -> str:
    """Return the `repr` of a user's value for a message.

    It is on one line, without terminal control characters, and cut when long.
    """
    try:
        text = repr(value)
    except (RecursionError, ValueError):  # JSON nearly too deep to be read; integers of thousands of digits
        return "(too deep or too long to show)"
    return text if len(text) <= most else text[: most - 1] + "…"
