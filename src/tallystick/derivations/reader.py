"""Read the statements of a text: Markdown, LaTeX, tables, chats, equations over several lines.

Lines without an equation may state a number, or be the row of a table. Other prose is skipped.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path

from tallystick.core.budget import OverBudget
from tallystick.derivations.arithmetic import Name, Number
from tallystick.derivations.expressions.tokens import Token, writes_dots
from tallystick.derivations.expressions.units import unit_of
from tallystick.derivations.reading import LEAST_SUM, MOST_SHOWN, Below, as_shown
from tallystick.derivations.rows import Rows
from tallystick.derivations.shown_sizes import shown_sizes
from tallystick.derivations.statements import (
    BOUND,
    Derivation,
    Side,
    Statement,
    Unread,
    margin_of,
    names_sum,
)
from tallystick.derivations.text.lines import DIGIT, MOST_LINE, RELATION, Line, joined, lines_in
from tallystick.derivations.text.respelled import as_equation
from tallystick.derivations.text.worded import LabelSets, settings_in, symbol_in
from tallystick.derivations.totals import Totals
from tallystick.derivations.values import LEAST_LISTED, LONGEST_ROW, alone_in
from tallystick.errors import BadInput, shown
from tallystick.files.local import open_regular

LARGEST_TEXT = 1_000_000  # bytes or characters; a book's chapter has 100,000
MOST_STATEMENTS = 3_000
MANY = f"is not read: a text is judged up to its first {MOST_STATEMENTS:,} equations"
LEAST_PROSE = 20  # words; a shorter text without an equation is refused as a mistake
LEAST_SAID = 1_000_000  # a smaller number in a sentence is not a model's total
MOST_PROSE = 1_000  # numbers in sentences
_HEADING = re.compile(r"\s*(?:#{1,6}\s|\\(?:sub)*section|\*\*[^*]+\*\*:?\s*$|\d{1,2}(?:\.\d{1,2}){1,3}\.?\s+[^\W\d])")
_QUOTED = " \"');,"  # behind the colon of a line that code prints
_ENDS = " *_:\uff1a\u3002"  # behind a heading's words
_TITLE = re.compile(
    r"(?P<words>[^()=≈\uff08|]*[^\W\d][^()=≈\uff08|]*)[(\uff08](?P<inside>[^()=\uff08\uff09|]*\d[^()=\uff08\uff09|]*(?:\([≈~]?\d[^()=|]{1,20}\)[^()=|]*)?)[)\uff09]"
)
# "- **Each layer 77,865,984**"
_ENDED = re.compile(r"(?P<words>[^\d()=≈|,.]*[^\W\d][^\d()=≈|,.]*?)\s+(?P<inside>\d{1,3}(?:[,.]\d{3})+)")
_ITEM = re.compile(r"[-*+•#]|\d{1,2}[.)]\s")
_SHARE = re.compile(r",\s*\d{1,3}(?:[.,]\d{1,2})?\s?%\s*$")  # "Embedding (38.7M, 31%)"
MOST_CELLS = 40  # of a table's head
HEAD = 2  # lines of a table up to the rule below its head
MOST_OUTER = 20  # headings around a line, by their indentation
MOST_TITLE = 8  # words of a heading with its number; a longer one is a sentence
# What may stand with that number: "94.4M per layer", "39,383,808個"
_OF_NUMBER = re.compile(
    r"(?:about|approx|circa|ca|rund|environ|约|約|总|計|共|per|each|layers?|blocks?|total|trainable|param|parâm|parám|weights|параметр|个|個|개|层|層|参数|參數|パラメータ|파라미터)",
    re.IGNORECASE,
)
# "Transformer x2      2 * (4 * 512^2) = 2.1M" has a count in its label.
_COLUMN = re.compile(r"([^\W\d][^=≈:|*]*[^\d\s]\s+[x*]\s?\d{1,3})\s{2,}([\d(][^=≈]*[=≈].*)")
# Between the parts of "gate: 4096 × 14336 = 58,720,256  up: 58,720,256"
_PARTS = re.compile(r"(?<=[\dKMB])\s{2,}(?=[^\W\d]\w*:\s*[≈~]?\s?\d)")
# Between those of "Per block: 7.1M, 12 blocks: 85M", perhaps with roundings, and one of them
_ITEMS = re.compile(r"(?:(?<=[\dKMB])|(?<=[\dKMB]\)))[,;]\s+(?=(?:\d{1,3}\s)?[^\W\d][^,;:=≈()]{0,40}:\s*[≈~]?\s?\d)")
_LISTED = re.compile(r"[^:=≈|]{1,60}:\s*[≈~]?\s?\d(?:[^:=≈]*|[^:=≈()]*\([≈~]\s?\d[^:=≈()]*\)\s*)")
_BARS = re.compile(r"\s\|{1,2}\s")
_LABELLED = re.compile(r"\s*[^\W\d][^|:=≈]{0,60}:\s*[≈~]?\s?\d")
_STATED = re.compile(r"[:=≈]\s*[≈~]?\s?\d")
_RULE = re.compile(r"[\s|:+=_-]*")
_ARITHMETIC = re.compile(r"\d\s*(?:\*\*|[*+/^]|[xX](?=\s*\d))\s*\(?\s*\d")
_NUMBERS = re.compile(r"\d{4}|\d[\d,. ]{3}|\d ?[KMBkmb万亿억만]")  # digits of a large number
# "Total: ~162M (more than 124M, due to context_length=256)"
_SETS = re.compile(
    r"(?P<stated>[^()=≈]*:\s*[~≈]?\s?\d[\d.,]*(?: \d{3})*\s?(?:[KMB]|[^\W\d]{4,12})?\s*)\([^()=≈]*\b[a-z]+(?:_\w+|[A-Z]\w*)\s?=\s?\d+[^()=≈*]*\)\s*"
)
# "n_embd, n_layer = 768, 12" of code
_SEVERAL = re.compile(r"\s*([A-Za-z_]\w*(?:\s*,\s*[A-Za-z_]\w*)+)\s*=\s*([\d_.]+(?:\s*,\s+[\d_.]+)+)\s*(?:#.*|;)?$")
_AROUND = " .,;:*_`(|"  # the words before a number in a sentence
_MODEL = re.compile(r"^[A-Z].*[\dA-Z-]|-")  # GPT-2, BERT-base, LLaMA
_OF_MODEL = re.compile(r"-|mod[eè]l|модел|模型|モデル|모델|版", re.IGNORECASE)  # "the 124M model"


def open_text(text: str | os.PathLike[str]) -> tuple[str, str]:
    """Return the name and content of a derivation: a file, standard input for ``-``, or the text.

    A string with a line break or an equation in it is the text; any other string names a file.

    Raises:
        BadInput: if the input is unreadable, too large or not UTF-8 text.
    """
    if not isinstance(text, str | os.PathLike) or text == "":
        raise BadInput(f"the derivation is {shown(text)}, expected its text or the path of a file", code="bad-value")
    if isinstance(text, str) and re.search(r"[\n=≈]|\\approx| ~ ", text):
        return "the text", text
    path = Path(text)
    name = str(path)
    if name == "-":
        if sys.stdin is None:
            raise BadInput("standard input is closed: give the text there, or name its file", code="unreadable")
        name, content = "standard input", sys.stdin.buffer.read(LARGEST_TEXT + 1)
    else:
        file, size = open_regular(path)
        with file:
            content = file.read(min(size, LARGEST_TEXT + 1))
    if len(content) > LARGEST_TEXT:
        raise BadInput(
            f"{name} is larger than {LARGEST_TEXT:,} bytes: too long for a derivation; give the part that derives",
            code="too-large",
        )
    if b"\0" in content:
        raise BadInput(f"{name} is binary, expected text: Markdown, LaTeX or plain", code="malformed")
    try:
        return name, content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(f"{name} is not text: byte {error.start} is not UTF-8", code="malformed") from None


def read_derivation(text: str, *, source: str, known: Iterable[str] = ()) -> Derivation:
    """Parse a text into its statements.

    Args:
        text: at most `LARGEST_TEXT` characters.
        source: the name of the text, for messages.
        known: names that have a value before the text defines any, such as a config's keys.

    Raises:
        BadInput: if the text is too long, or nothing in it can be judged.
    """
    if len(text) > LARGEST_TEXT:
        raise BadInput(
            f"{source} is longer than {LARGEST_TEXT:,} characters: too long for a derivation; give the part that derives",
            code="too-large",
        )
    reader = _Reader(set(known), dots=writes_dots(text))
    for line in joined(lines_in(text)):
        if len(reader.statements) >= MOST_STATEMENTS:
            reader.unread.append(Unread(line.first, line.text[:MOST_SHOWN], MANY))
            break
        try:
            reader.read(line)
        except OverBudget as error:
            raise BadInput(f"{source}, line {line.first}: {error}", code=error.code) from None
        except BadInput as error:
            reader.refuse(line, str(error))
    if reader.refused and not reader.statements:
        raise BadInput(f"{source}, line {reader.refused[0][0]}: {reader.refused[0][1]}", code="too-large")
    if not reader.statements and (len(text.split()) < LEAST_PROSE or not _NUMBERS.search(text)):
        raise BadInput(
            f"{source} has no equation in it, such as: Token embedding: 50257 × 768 = 38,597,376", code="no-answer"
        )
    prose, rows = tuple(reader.prose), tuple(reader.rows)
    return Derivation(source, tuple(reader.statements), tuple(reader.unread), prose=prose, rows=rows, dots=reader.dots)


# -- statements -----------------------------------------------------------------------------------


class _Reader(Rows, Totals):
    """Reads each line: its equations, its table row, or the number that it states."""

    def read(self, line: Line) -> None:
        if len(line.text) > MOST_LINE and RELATION.search(line.text):
            self._miss(line)
        grid = self.table and line.plain.startswith("+-") and _RULE.fullmatch(line.plain)  # "+-----+-----+"
        self.table = self.table + 1 if grid or "|" in line.plain else 0
        if not self.table:
            self.how, self.head, self.columns = None, (), 0
        elif self.table == HEAD and _RULE.fullmatch(line.plain):
            self._drop_head(line)
        before = len(self.statements)
        if not line.text:
            return
        self.outline.enter(line)
        item = _ITEM.match(line.text) is not None
        if self.outer and self.outer[-1].opens:
            self.outer[-1] = self.outer[-1].opened(line)
        while self.outer and _is_outside(line, self.outer[-1], item=item):
            self.heading = self.outer.pop().before
        self._line(line)
        if len(self.statements) == before:
            self._title(line)
        heading = _HEADING.match(line.text) is not None
        new, colon = self.statements[before:], line.plain.rstrip(_QUOTED).endswith((":", "\uff1a"))
        # "### GPT-S (d=768, L=12)", "TOTAL (full=False):"
        sets = (heading and all(map(_sets_size, new))) or (colon and all(_sets(one) for one in new))
        if sets or len(self.statements) == before or self.statements[-1].titles:
            if heading or colon:
                below = Below(self.heading, line.margin, line.margin + item, margin_of(line.text))
                self.outer = [] if heading else [*self.outer[-MOST_OUTER:], below]
                self.heading = line.plain.strip(" #*:\uff1a")[:MOST_SHOWN]
                self.section = self.heading if heading else self.section
            if _ARITHMETIC.search(line.plain):
                self._miss(line)
        self.outline.put(line)
        self.above = line
        large = len(self.prose) < MOST_PROSE and _NUMBERS.search(line.plain)
        if large and not BOUND.search(line.plain) and not _HEADING.match(line.text):
            self._sentences(line)

    def _drop_head(self, rule: Line) -> None:
        """Drop the numbers in a table's head, but no sizes: "| Part | 350M | 7B (d=4096) |"."""
        head = [one for one in self.statements[-MOST_CELLS:] if one.last == rule.first - 1]
        kept = [one for one in head if one.name or len(one.sides) > 1]
        self.statements[len(self.statements) - len(head) :] = kept

    def _line(self, line: Line) -> None:
        """Read the equations of a line, its table row, or the number that it states."""
        before = len(self.statements)
        if (found := settings_in(line.plain)) is not None:
            self._with_settings(line, found)
            return
        if (symbol := symbol_in(line.plain)) is not None and (size := alone_in(self._tokens(symbol["size"]))):
            self._add(line, symbol["words"], [Side(size)], name=symbol["name"])
            return
        if "|" in line.plain and len(parts := _beside(line.plain)) > 1:
            for part in parts:
                self._line(line._replace(plain=part))
            return
        line = line._replace(plain=as_equation(line.plain))
        if line.plain.count("|") > 1 and not _RULE.fullmatch(line.plain):
            self._shown(line)
            self._row(line)
        elif "=" in line.plain and (set_ := _SETS.fullmatch(line.plain)):
            self._value(line, set_["stated"])
        elif several := _SEVERAL.match(line.plain):
            self._several(line, several)
        elif ":" in line.plain and len(parts := _parts(line.plain)) > 1:
            for part in parts:
                self._line(line._replace(plain=part))
        elif RELATION.search(line.plain) and not _RULE.fullmatch(line.plain):
            self._shown(line)
            column = _COLUMN.fullmatch(line.plain) if len(line.plain) <= LONGEST_ROW else None
            label, text = column.groups() if column else ("subtotal" if self._ends_sum(line) else "", line.plain)
            self._equations(line, text, label)
            self._totals(line)
        elif DIGIT.search(line.plain):
            self._value(line, line.plain)
            if len(self.statements) == before:
                self._totals(line)

    def _with_settings(self, line: Line, found: LabelSets) -> None:
        """Read the settings in a line's label, then the line without them."""
        for setting in found.settings:
            self._equations(line, setting, "")
        before, shown = len(self.statements), as_shown(line)
        self._line(line._replace(plain=f"{found.words}{found.rest}"))
        for place, one in enumerate(self.statements[before:], before):
            label = one.label.replace(found.words.strip(_AROUND), found.label.strip(_AROUND))
            self.statements[place] = one._replace(plain=shown, label=label)

    def _ends_sum(self, line: Line) -> bool:
        """Return whether a line "= 49.6B" ends a sum of lines with plus signs."""
        before = self.statements[-1] if self.statements else None
        adds = before is not None and before.last == line.first - 1 and before.plain.lstrip().startswith("+ ")
        return adds and line.plain.lstrip().startswith("=")

    def _title(self, line: Line) -> None:
        """Add the number that a heading or item ends with: "Attention (94.4M per layer)"."""
        words = line.plain.rstrip(_ENDS)
        title = _TITLE.fullmatch(words) if words[-1:] in (")", "\uff09") else None
        if title is None and _ITEM.match(line.text):
            title = _ENDED.fullmatch(words)
        pieces = self._tokens(_SHARE.sub("", title["inside"])) if title is not None else []
        number = alone_in(pieces)
        if title is None or number is None or number.value < LEAST_LISTED or BOUND.search(title["inside"]):
            return
        said = [piece.text for piece in pieces if piece.kind == "word"]
        if len(title["words"].split()) <= MOST_TITLE and all(map(_OF_NUMBER.match, said)):
            side = Side(number, loose=pieces[0].kind != "number", unit=unit_of(pieces))
            self._add(line, title["words"], [side], clause=title["inside"], titles=True)

    def _shown(self, line: Line) -> None:
        """Define the variables whose sizes an equation shows: "C × 3C = 768 × 2304"."""
        for name, size in shown_sizes(line.plain):
            if (name not in self.known or name in self.shown) and (len(name) == 1 or "_" in name):
                self.shown.add(name)
                self._add(line, name, [Side(Number(Fraction(size)))], name=name)

    def _several(self, line: Line, match: re.Match[str]) -> None:
        """Add a statement for each variable of "n_embd, n_layer = 768, 12"."""
        names, values = ([one.strip() for one in part.split(",")] for part in match.groups())
        for name, value in zip(names, values, strict=False) if len(names) == len(values) else ():
            number = alone_in(self._tokens(value))
            if number is not None:
                self._add(line, name, [Side(number)], name=name)

    def _sentences(self, line: Line) -> None:
        """Keep the large numbers of a line, in case the text states no total.

        "with the head that makes 163.0M" is kept; GPT-2 124M is a name and is not.
        """
        pieces = self._tokens(line.plain)
        for place, piece in enumerate(pieces):
            if piece.number is None or piece.number.value < LEAST_SAID or len(self.prose) == MOST_PROSE:
                continue
            before = next((one.text for one in reversed(pieces[max(0, place - 3) : place]) if one.kind != "open"), "")
            behind = next((one.text for one in pieces[place + 1 : place + 2]), "")
            dash = behind == "-" and pieces[place + 2 : place + 3] and pieces[place + 2].kind == "word"
            behind = "" if dash and line.plain[pieces[place + 1].start - 1].isspace() else behind  # "8.03 B — the sum"
            around = pieces[max(0, place - 1) : place + 2 if behind else place]
            operand = any(one.kind == "operator" for one in around) and not _is_shared(pieces, place)
            share = before == "of" and place > 1 and pieces[place - 2].text.endswith("%")  # "31% of 124M"
            if share or operand or _MODEL.search(before) or _OF_MODEL.match(behind):
                continue
            if unit_of(pieces[place : place + 3]) in ("", "parameters"):
                label = _last_words(line.plain, pieces, place)
                text, plain = line.text[:MOST_SHOWN], as_shown(line)
                side = Side(piece.number)
                self.prose.append(Statement(line.first, line.last, text, plain, label, self.heading, "", (side,)))


def _is_outside(line: Line, below: Below, *, item: bool) -> bool:
    """Return whether a line is not below a heading: it is indented less than the lines that are.

    The heading's own total may be indented like the heading.
    """
    ends = line.margin <= below.margin < below.within and not names_sum(line.plain)
    return ends or line.margin + (not item) < below.least


def _sets_size(statement: Statement) -> bool:
    """Return whether a statement only sets a size: "d=768"."""
    *names, number = (side.expression for side in statement.sides)
    named = bool(statement.name) and all(isinstance(name, Name) for name in names)
    return named and isinstance(number, Number) and number.value < LEAST_SUM


def _sets(statement: Statement) -> bool:
    """Return whether a statement is a setting in parentheses, perhaps without a number."""
    return statement.aside and bool(statement.name) and len(statement.sides) == 1


def _is_shared(pieces: Sequence[Token], place: int) -> bool:
    """Return whether a number is the whole of a share: "trained: 296,450 / 110,148,868 = 0.27%"."""
    share = any(piece.text.endswith("%") for piece in pieces[place + 1 : place + 4])
    return share and pieces[place - 1].text == "/"


def _last_words(text: str, pieces: Sequence[Token], place: int) -> str:
    """Return the words of a sentence between its number at `place` and the one before that."""
    first = place
    while first and pieces[first - 1].number is None and pieces[first - 1].text != ".":
        first -= 1
    words = text[pieces[first].start : pieces[place].start].strip(_AROUND)
    bare = "|" in text and not any(map(str.isalpha, words))  # "| q_proj | (1600, 1600) | 2,560,000 |"
    return text[: pieces[place].start].strip(_AROUND) if bare else words


def _beside(text: str) -> list[str]:
    """Return the parts of a line between bars: "trainable: 20,971,520 || all params: 8.05B"."""
    parts = _BARS.split(text)
    return parts if all(map(_LABELLED.match, parts)) else [text]


def _parts(text: str) -> list[str]:
    """Return the parts of a line with several in columns or in a list, or the line alone."""
    columns, items = _PARTS.split(text), _ITEMS.split(text)
    if all(map(_STATED.search, columns)) and len(columns) > 1:
        return columns
    return items if all(map(_LISTED.fullmatch, items)) else [text]
