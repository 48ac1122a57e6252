"""Choose the mark and the remarks for each line of a checked derivation.

The terminal and the page show the same marks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from itertools import groupby
from typing import NamedTuple

from tallystick.answers.check.check import Check
from tallystick.answers.check.claims import Equation
from tallystick.derivations.statements import Unread
from tallystick.derivations.text.markup import plain, readable
from tallystick.report.derivation.number_spans import excerpt, spotted

LONG = 300  # length at which a statement's text was cut
SHARE_DIGITS = 4  # of the right percentage
MOST_DIGITS = 5  # of a right number of bytes in the text's unit
_PREFIXES = "KMGT"
_BYTES = re.compile(rf"(?P<prefix>[{_PREFIXES}])(?P<binary>i?)B$")
_BULLET = re.compile(r"^(?:[-*•|]\s+|#+\s+)+")
_DASH = re.compile(r"\A(?!.*(?:→|⇒|⟹|➜|\\to\b|\\[rR]ightarrow|\\implies)).*—", re.DOTALL)
_EMPTY = re.compile(r"(?: \|){2,}")  # empty cells of a table
_POWER = re.compile(r"\^\(?(\d{1,2})\)?(?![\d.,(])")
_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


class Mark(Enum):
    """The verdict on a line, as a sign."""

    RIGHT = "✓"
    WRONG = "✗"
    CARRIED = "→"
    UNJUDGED = "?"

    @property
    def words(self) -> str:
        """The sign's meaning."""
        return _WORDS[self]


_WORDS = {
    Mark.RIGHT: "right",
    Mark.WRONG: "wrong",
    Mark.CARRIED: "right given an earlier error",
    Mark.UNJUDGED: "not judged",
}


class Marked(NamedTuple):
    """One statement or unread line of a text, with its mark and remarks."""

    first: int
    last: int
    plain: str  # without markup
    mark: Mark
    sentences: tuple[str, ...] = ()  # what is wrong or not judged, and the correction
    notes: tuple[str, ...] = ()  # what its numbers are in the model
    equations: tuple[Equation, ...] = ()


def marked(answer: Check) -> list[Marked]:
    """Return every line that is judged or should have been, in text order.

    Args:
        answer: the checked derivation.
    """
    wrong = [equation for equation in answer.equations if equation.should_be not in (None, equation.right)]
    judged = groupby(answer.equations, key=lambda one: (one.line, one.last_line, one.plain))
    lines = [_statement(list(equations), wrong, answer.lines) for _, equations in judged]
    known = {line.first: place for place, line in enumerate(lines)}
    for unread in answer.unread:
        place = known.get(unread.line)
        if place is None:
            lines.append(_unread(unread))
        else:
            said = f"a part of this line is not judged{_why(unread)}"
            lines[place] = lines[place]._replace(sentences=(*lines[place].sentences, said))
    return sorted(lines, key=lambda line: line.first)


def _statement(equations: list[Equation], wrong: list[Equation], lines: Sequence[str]) -> Marked:
    first = equations[0]
    text = _text(equations, lines[first.line - 1 : first.last_line])
    sentences = _once(sentence for equation in equations for sentence in _sentences(equation, wrong))
    notes = _once(equation.matches for equation in equations if equation.correct and equation.matches)
    if not all(equation.correct for equation in equations):
        mark = Mark.WRONG
    elif any(equation.carried for equation in equations):
        mark = Mark.CARRIED
    else:
        mark = Mark.RIGHT
    return Marked(
        first.line,
        first.last_line,
        text,
        mark,
        sentences,
        tuple(note for note in notes if not any(note in sentence for sentence in sentences)),
        tuple(equations),
    )


def _text(equations: list[Equation], lines: Sequence[str]) -> str:
    """Return a statement's text without markup, or the wrong parts of a long statement."""
    text = equations[0].plain or equations[0].text
    if len(text) >= LONG:
        numbers = [equation.right for equation in equations if not equation.correct or equation.carried]
        whole = readable(" ".join(map(plain, lines)))
        text = excerpt(whole, numbers) or f"{text.rpartition(' ')[0]} …"
    if _DASH.search("".join(lines)):  # the parser reads a dash as an arrow
        text = text.replace("→", "—")
    return shown(text)


def _sentences(equation: Equation, wrong: list[Equation]) -> Iterator[str]:
    """Yield an equation's remarks: correction, source of an error, the label's meaning."""
    if equation.should_be is not None:
        yield f"{correction(equation)}{_in_model(equation)}"
        return
    if equation.carried:
        where = _origin(equation, wrong)
        size = "large" if equation.carried > 0 else "small"
        yield f"right given the earlier error: {written(abs(equation.carried))} too {size}, from {where}"
    if equation.label_names:
        yield f"in the model, {equation.label_names}"


def _origin(equation: Equation, wrong: list[Equation]) -> str:
    """Return the earlier line whose error is carried on, if only one fits."""
    earlier = [other for other in wrong if other.line < equation.line]
    as_large = [other for other in earlier if other.should_be == other.right - equation.carried]
    lines = {other.line for other in as_large or earlier}
    return f"line {lines.pop()}" if len(lines) == 1 else "earlier lines"


def right_number(equation: Equation) -> str:
    """Return the right number of a wrong equation: a percentage, or bytes in the text's unit."""
    return _right_number(equation, _as_written(equation))


def _right_number(equation: Equation, said: str) -> str:
    number = equation.left if equation.should_be is None else equation.should_be
    if equation.percent:
        return format(number, f".{SHARE_DIGITS}g")
    unit = _BYTES.search(said)
    return f"{_in_unit(number, unit, _decimals(number, unit)):,.15g} {unit[0]}" if unit else written(number)


def correction(equation: Equation) -> str:
    """Return the correction of a wrong equation: "38,596,416 should be 38,597,376, off by -960"."""
    said = _as_written(equation)
    right = _right_number(equation, said)
    if equation.percent:
        return f"{said}% should be {right}%"
    if equation.should_be is None or equation.should_be == equation.right:
        return f"the left side is {written(equation.left)}, not {said}"
    off = equation.right - equation.should_be
    if unit := _BYTES.search(said):
        more = _in_unit(off, unit, _decimals(equation.should_be, unit))
        return f"{said} should be {right}, off by {more:+,.15g} {unit[0]}"
    return f"{said} should be {right}, off by {written(off, sign='+')}"


def _decimals(number: float, unit: re.Match[str]) -> int:
    """Return how many decimals a number of bytes has in a unit: 2 for 497.76 MB."""
    return max(0, MOST_DIGITS - len(f"{_in_unit(number, unit, 0):.0f}"))


def _in_unit(number: float, unit: re.Match[str], decimals: int) -> float:
    scale: int = (1024 if unit["binary"] else 1000) ** (_PREFIXES.index(unit["prefix"]) + 1)
    return round(number / scale, decimals)


def _as_written(equation: Equation) -> str:
    """Return the right side as written in the text, such as 38.4M, if it is one number."""
    (span,) = spotted(equation.plain, [equation.right])
    return equation.plain[slice(*span)] if span else written(equation.right)


def _in_model(equation: Equation) -> str:
    """Return what the corrected number is in the model, and what the label names."""
    said = f"; in the model: {equation.matches}" if equation.matches else ""
    return f"{said}; but {equation.label_names}" if equation.label_names else said


def _unread(unread: Unread) -> Marked:
    return Marked(unread.line, unread.line, shown(unread.text), Mark.UNJUDGED, (f"not judged{_why(unread)}",))


def _why(unread: Unread) -> str:
    return f": {unread.why}" if unread.why else ""


def _once(said: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(said))


def written(number: float, *, sign: str = "") -> str:
    """Format a number with thousands separators; a fraction without floating-point noise."""
    return format(number, f"{sign},") if isinstance(number, int) else format(number, f"{sign},.15g")


def shown(text: str) -> str:
    """Return a line without bullet, with superscripts: ``- W_q: 768^2`` is ``W_q: 768²``."""
    text = _EMPTY.sub(" |", _BULLET.sub("", text)).rstrip("| ")
    return _POWER.sub(lambda power: power[1].translate(_SUPERSCRIPTS), text)
