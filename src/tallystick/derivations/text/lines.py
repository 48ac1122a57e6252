"""Split a text into lines, and join those of one equation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tallystick.derivations.statements import DRAWN, lines_of, margin_of
from tallystick.derivations.text.markup import plain

MOST_JOINED = 60  # lines of one equation
MOST_LINE = 50_000  # characters; a longer line is data or an image

RELATION = re.compile(r"[=≈~]")
DIGIT = re.compile(r"\d")
_GOES_ON = re.compile(r"(?:[-+*/=≈(]|\bplus|\btimes)\s*$")  # end of a line that the next line completes
# A line that begins with a relation continues a chain, even after a blank line.
_RESULT = re.compile(r"\s*(?:~=|[=≈])\s")
_TIMES = re.compile(r"\d\*\s*$")  # "shrinks by 2.7×", which counts times and multiplies nothing
_CONTINUES = re.compile(r"\s*(?:=|≈|~=|[*/](?=\s*[\d(])|\+(?=\s*[\w(]))")
_OWN_NUMBERS = re.compile(r"\s*+\+\s*+(?:[^\W\d]\w++\s*+)++:")  # "+ Positions: 1024 × 768" is an item of a list
# "+ pooler  768 × 768 + 768 = 590,592", "+ 2 norms per block, 2 × 768 = 1,536", "+ final norm =
# 384"
_OWN_LABEL = re.compile(r"\s*+\+\s*+(?:\d{1,3}\s+)?[^\W\d_]{3,}[^=≈]*(?:\s\d[^=≈]*[=≈]|[^\W\d_]\s*[=≈]\s*[\d,.]+\s*$)")
# "total = words 38.6M + positions 0.8M", whose last addends stand on the next line, further in
_UNFINISHED = re.compile(r"[^=≈~+*\d]*=(?:\s*[^\W\d]|[^=≈~+]*\+)[^=≈~]*")
_COMMENTED = re.compile(r"(?:--|[#/;*>]+)\s*")
_OWN_TIMES = re.compile(r"\s*\*\s*\d{1,4}\s*[^\W\d_][^=≈*/]*\s\d[\d,._]{3,}")  # "× 80 layers  68,452,352,000"
_OWN_RESULT = re.compile(
    r"\s*\*\s*\d{1,4}\s*[^\W\d_][^=≈*/+:]*:\s*[≈~]?\s?(?:[\d,._]{4,}|\d[\d.,]*\s?[KMB])\s*\w*\s*$"
)  # "× 80 layers: 68,452,352,000"
_ITEM = re.compile(
    r"\s*[-*•]\s.*:\s*[≈~]?\s?\d[\d,.]*\s?[^\W\d]{0,3}\s*$"
)  # "- Weights: 496 MB" of a list, with its sum below: "= 1.7 GB"
# ">>> 50257 * 768" and "38597376", or "In [1]: 50257*768" and "Out[1]: 38597376"
_ASKED = re.compile(r"(?:>>>|In \[\d{1,4}\]:)\s*([\d_(][\d\s_.()*+/-]{0,200}[*+/-][\d\s_.()*+/-]{0,200}?)\s*(?:#.*)?")
_ANSWER = re.compile(r"(?:Out\[\d{1,4}\]:\s*)?(\d[\d_]*(?:\.\d+)?)")
_ADDEND = re.compile(r"\s*\d[\d,._]{2,}\s*(?:\([^()=]*\))?\s*")
_SIGN = re.compile(r"(?://|#+)\s*[^\W\d]")  # begins a comment or heading; "# = 4,718,592" continues the line above
# Mathematics copied from a web page, one token a line.
_TOKEN = re.compile(r"\s*(?:[*/+=≈]|[KMBT]|\d[\d,.]*[KMB]?)\s*")
_TOKENS = re.compile(r"\s*\d[\d,.]*(?:\s*[*/+=≈^KMBT]|\s\s*\d[\d,.]*)*\s*")
# A sum of displayed mathematics, one addend a line: "(784 × 512 + 512)", "+", "(512 × 256 + 256)"
_SIGNS = ("+", "*", "×", r"\times", r"\cdot")
_ARITHMETIC = re.compile(r"\s*\(*\d[\d\s().,+*/^-]*")
_ENDS_IN_VALUE = re.compile(r"[\w)\]%]\s*$")
_STRING_BREAK = re.compile(r"\\n(?=[\sA-Z0-9\\•*-]|$)")  # in a string of code; \nu and \neq are LaTeX
# The same in a string with several, but no command of LaTeX
_ANY_BREAK = re.compile(
    r"\\n(?!(?:eq|u|abla|ot(?:in)?|i|mid|less|geq|leq|exists|ewline|onumber|earrow|warrow)(?![a-z]))"
)
LEAST_BREAKS = 3
_ROW = re.compile(r"(?=<tr\b)")
_ENDS_IN_TOTAL = re.compile(r"\w[.;,)]?\s+total:\s*$", re.IGNORECASE)  # of a sentence that the next line completes
_NUMBER = re.compile(r"\s*\d[\d,.' ]*\d")
_PRODUCT = re.compile(r"\s*\d[\d,.]*(?:\s*\*\s*\d[\d,.]*)+\s*")  # "7168 × 256" alone on its line
_CALLS = re.compile(r"\w=[\"']")  # "Message(content='5 × 4 = 20", whose parenthesis closes far below
_PRINTED = re.compile(r"[^\W\d]\w*\(\s*(?:#[^=]*)?$")  # "(0-11): 12 x Block(" of a printed model
_COMMENT = re.compile(r"(?<=[\w)])\s{2,40}#\s[^=≈]{0,80}$")  # "+ 7,011,584,000    # 32 layers"
_QUOTE = re.compile(r"[\"'`]")


class Line(NamedTuple):
    """One or more lines of the text that are parsed together."""

    first: int
    last: int
    text: str  # as written
    plain: str
    margin: int = 0  # characters before its text, comment signs included


def lines_in(text: str) -> Iterator[Line]:
    """Yield each line of a text as plain characters; those of a string in code are split."""
    for number, written in enumerate(lines_of(text), 1):
        for piece in _pieces(written):
            for part in plain(piece).split("\n") if len(written) <= MOST_LINE else [""]:
                yield Line(number, number, written.strip(), part, margin_of(written))


def _pieces(written: str) -> list[str]:
    """Return the lines of a string in code, or the rows of a table in HTML, on one line."""
    if "\\n" in written and _QUOTE.search(written):
        pieces = _STRING_BREAK.split(written)
        return _ANY_BREAK.split(written) if len(pieces) > LEAST_BREAKS else pieces  # one piece more than breaks
    return _ROW.split(written) if "<tr" in written else [written]


def joined(lines: Iterable[Line]) -> Iterator[Line]:
    """Yield the lines, with the lines of one equation merged."""
    held: Line | None = None
    blank: Line | None = None  # between the lines of a long chain
    above = ""  # the line before `held`
    for line in lines:
        if held is not None and line.text and not line.plain.strip():
            continue  # markup alone, such as $$
        if held is not None and blank is None and not line.text and _may_go_on(held):
            blank = line
            continue
        if held is not None and blank is not None and (not _RESULT.match(line.plain) or _is_of_list(held, line)):
            yield from (held, blank)
            held = None
        blank = None
        if held is not None and (answered := _answered(held, line)) is not None:
            held = answered
            continue
        if held is not None and _ends_sum(held, line):
            held = held._replace(last=line.last, plain=f"{held.plain} =")
            continue
        if held is not None and _belongs(held, line) and not _ends_column(above, held, line):
            text = held.text if held.last == line.first else f"{held.text} {line.text}"
            held = held._replace(plain=_COMMENT.sub("", held.plain))
            power = "^" if _is_power(held, line) else " "  # a superscript on its own line
            held = Line(held.first, line.last, text, f"{held.plain}{power}{line.plain}", min(held.margin, line.margin))
            continue
        if held is not None:
            yield held
            above = held.plain
        held = line
    if held is not None:
        yield held
    if blank is not None:
        yield blank


def _answered(held: Line, line: Line) -> Line | None:
    """Return an expression at Python's prompt with the answer below it, as an equation, or None."""
    asked = _ASKED.fullmatch(held.text) if held.text[:3] in (">>>", "In ") else None
    answer = _ANSWER.fullmatch(line.text) if asked is not None else None
    if asked is None or answer is None:
        return None
    return held._replace(last=line.last, plain=f"{plain(asked[1])} = {answer[1]}")


def _ends_column(above: str, held: Line, line: Line) -> bool:
    """Return whether a line is the last addend of a column, and the only one with a sign.

    Example: "24,576,000", "70,791,168  (8 layers)", "+      768", and a rule below them.
    """
    column = held.first == held.last and all(_ADDEND.fullmatch(one) for one in (above, held.plain))
    return (
        column
        and line.plain.lstrip().startswith("+")
        and _ADDEND.fullmatch(line.plain.replace("+", " ", 1)) is not None
    )


def _ends_sum(held: Line, line: Line) -> bool:
    """Return whether a line is drawn below a sum that has one addend on each line, behind its +."""
    summed = held.last > held.first and "+" in held.plain and RELATION.search(held.plain) is None
    return summed and DRAWN.fullmatch(line.plain) is not None


def _may_go_on(held: Line) -> bool:
    """Return whether a blank line may separate an equation from its next relation."""
    return RELATION.search(held.plain) is not None or _PRODUCT.fullmatch(held.plain) is not None


def _belongs(held: Line, line: Line) -> bool:
    """Return whether `line` continues the equation in `held`.

    The equation is unfinished, or the next line begins with a joining operator or relation.
    """
    if not line.plain.strip() or _is_apart(held, line):
        return False
    if _TOKEN.fullmatch(line.plain) and _TOKENS.fullmatch(held.plain):
        numbers = line.plain.strip()[0].isdigit() and held.plain.rstrip()[-1].isalnum()
        return not numbers or _is_power(held, line)
    relates, counts = RELATION.search(held.plain) is not None, DIGIT.search(held.plain) is not None
    is_open = counts and held.plain.count("(") > held.plain.count(")") and not _CALLS.search(held.plain)
    is_open = is_open and not ("=" not in held.plain and _PRINTED.search(held.plain))
    totals = _ENDS_IN_TOTAL.search(held.plain) and _NUMBER.match(line.plain)
    lone = line.text in _SIGNS and _ARITHMETIC.fullmatch(held.plain)
    if totals or is_open or lone or ((counts or relates) and _GOES_ON.search(held.plain)):
        return not _TIMES.search(held.plain) or line.plain.lstrip()[0] in "(0123456789"
    unfinished = _indent(line) > _indent(held) and _UNFINISHED.fullmatch(held.plain) is not None
    own = (_OWN_RESULT, _OWN_LABEL if relates and not unfinished else _OWN_TIMES, _OWN_NUMBERS)
    if any(pattern.match(line.plain) for pattern in own):
        return False
    if not _CONTINUES.match(line.plain) or not _ENDS_IN_VALUE.search(held.plain):
        return False
    own_item = line.plain.lstrip()[0] in "+*" and held.text[:2] in ("+ ", "* ", "- ") and relates
    return unfinished or not own_item


def _indent(line: Line) -> int:
    """Return the column in which a line's words begin, behind the sign of a comment."""
    sign = _COMMENTED.match(line.text)
    return line.margin + (len(sign[0]) if sign else 0)


def _is_of_list(held: Line, line: Line) -> bool:
    """Return whether a result is of the whole list above it: "- 512 × 2048 = 1,048,576", "= 3M"."""
    return held.text.startswith(("- ", "* ")) and line.margin < held.margin and RELATION.search(held.plain) is not None


def _is_apart(held: Line, line: Line) -> bool:
    """Return whether a line begins something else: a comment, rule, row or sum."""
    if "|" in held.plain or "|" in line.plain or line.last - held.first >= MOST_JOINED:
        return True
    begins = _SIGN.match(line.text) and not held.text.startswith(("//", "#"))
    summed = held.plain.lstrip().startswith("+ ") and RELATION.search(held.plain) and _RESULT.match(line.plain)
    drawn = DRAWN.fullmatch(line.plain) or DRAWN.fullmatch(held.plain)
    return bool(begins or drawn or summed or (_ITEM.match(held.text) and _RESULT.match(line.plain)))


def _is_power(held: Line, line: Line) -> bool:
    """Return whether a 2 or 3 on its own line is a superscript.

    The product above it is copied one token a line.
    """
    product = held.last > held.first and _TOKENS.fullmatch(held.plain) and "*" in held.plain
    return bool(product) and line.plain.strip() in ("2", "3") and held.plain.rstrip()[-1].isdigit()
