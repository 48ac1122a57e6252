"""Scan JSON piece by piece, as strictly as the safetensors library, without building values.

At most `DEEPEST` lists and objects may be nested, as in that library.
"""

from __future__ import annotations

import json
import math
import re

from tallystick.core.budget import current
from tallystick.errors import BadInput, quoted, shown

DEEPEST = 127

# Repeated quantifiers are possessive (*+), so no text can make the scan backtrack.
SPACE = r"[ \t\r\n]*+"
STRING = r'"[^"\\\x00-\x1f]*+(?:\\.[^"\\\x00-\x1f]*+)*+"'
_NUMBER = r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?[0-9]++)?+"
_VALUE = re.compile(rf"({STRING})|({_NUMBER})|true|false|null|([\[{{])")
_SPACES = re.compile(SPACE)
_TOKEN = re.compile(rf"({STRING}){SPACE}")
_UNFIT = re.compile(r"[0-9]{300}|[eE]")  # in numbers that may overflow a float


class Scan:
    """A text and a position in it. Each method reads what follows, and advances the position."""

    def __init__(self, text: str, position: int = 0, *, behind: int = 0) -> None:
        self.text, self.position = text, position
        self._behind = behind  # characters before this text, for messages
        self._budget = current()

    def space(self) -> None:
        """Skip whitespace."""
        end = _SPACES.match(self.text, self.position)
        self.position = end.end() if end else self.position

    def sees(self, mark: str) -> bool:
        """Skip a mark and the whitespace after it, if it is next; return whether it was."""
        if not self.text.startswith(mark, self.position):
            return False
        self.position += len(mark)
        self.space()
        return True

    def expect(self, mark: str, wanted: str = "") -> None:
        """Skip a mark and the whitespace after it.

        Args:
            mark: the expected text.
            wanted: description of it, for the message.

        Raises:
            BadInput: if something else is next.
        """
        if not self.sees(mark):
            raise self.unexpected(wanted or mark)

    def string(self, wanted: str = "a string") -> str:
        """Read a string and return its value.

        Raises:
            BadInput: if something else is next.
        """
        found = _TOKEN.match(self.text, self.position)
        if found is None:
            raise self.unexpected(wanted)
        self.position = found.end()
        return string_of(found[1])

    def key(self, wanted: str = "a name in quotes and a colon") -> str:
        """Read a key of an object with its colon; return the key."""
        word = self.string(wanted)
        self.expect(":", wanted)
        return word

    def goes_on(self, close: str) -> bool:
        """Return whether another item follows in a list or object; otherwise skip its end."""
        if self.sees(","):
            return True
        self.expect(close, f"a comma or {close}")
        return False

    def skip(self, inside: int) -> None:
        """Skip a valid value of any kind.

        Args:
            inside: number of lists and objects around it.

        Raises:
            BadInput: if it is not valid, or nested too deeply.
        """
        ends: list[str] = []  # closing marks of the open lists and objects
        while True:
            self._value(ends, inside)
            while ends and not self.text.startswith(",", self.position):
                self.expect(ends.pop(), "a comma or the end of a list or object")
            if not ends:
                return
            self.expect(",")
            if ends[-1] == "}":
                self.key()

    def _value(self, ends: list[str], inside: int) -> None:
        """Skip a value; of a non-empty list or object, only up to the end of its first value."""
        self._budget.step(2)
        found = _VALUE.match(self.text, self.position)
        if found is None:
            raise self.unexpected("a value")
        self.position = found.end()
        self.space()
        token, number, opened = found.groups()
        if token:
            string_of(token)
        elif number and _UNFIT.search(number) and math.isinf(float(number)):
            raise BadInput(f"the header holds the number {quoted(number)}, which is too large", code="too-large")
        elif opened:
            if inside + len(ends) >= DEEPEST:
                raise BadInput(f"the header nests more than {DEEPEST} lists and objects", code="too-large")
            close = "]" if opened == "[" else "}"
            if not self.sees(close):
                ends.append(close)
                if close == "}":
                    self.key()
                self._value(ends, inside)

    @property
    def is_cut(self) -> bool:
        """Whether the text ends here, or within a string that begins here."""
        return self.position >= len(self.text) or (
            self.text[self.position] == '"' and not _TOKEN.match(self.text, self.position)
        )

    def unexpected(self, wanted: str) -> BadInput:
        """Return the error for unexpected text at this position."""
        found = self.text[self.position : self.position + 120]
        said = shown(found, most=130) if found else "its end"
        return BadInput(
            f"the header is malformed at character {self._behind + self.position}: expected {wanted}, found {said}",
            code="malformed",
        )


def string_of(token: str) -> str:
    r"""Return the value of a string token with its quotes.

    Raises:
        BadInput: for an unknown escape, or half of a surrogate pair, such as \ud800 alone.
    """
    if "\\" not in token:
        return token[1:-1]
    try:
        value: str = json.loads(token)
        value.encode()
    except ValueError:
        raise BadInput(f"the header holds the malformed string {quoted(token)}", code="malformed") from None
    return value
