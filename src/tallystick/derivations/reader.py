"""Read the statements of a text: Markdown, LaTeX, tables, chats, equations over several lines.

Lines without an equation may state a number, or be the row of a table. Other prose is skipped.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import accumulate
from pathlib import Path

from tallystick.core.budget import OverBudget
from tallystick.derivations.arithmetic import Expression, Number, Operation, Undefined, alone, evaluate
from tallystick.derivations.chains import ABOUT, LETTER, Chains, numbers_end
from tallystick.derivations.lines import MOST_LINE, RELATION, Line, joined, lines_in
from tallystick.derivations.markup import readable
from tallystick.derivations.parser import prefix, suffix
from tallystick.derivations.phrases import computes, unit_of
from tallystick.derivations.reading import LEAST_SUM, MOST_SHOWN
from tallystick.derivations.statements import BOUND, SUBTOTAL, TOTAL, Derivation, Side, Statement, Unread
from tallystick.derivations.tokens import Token, writes_dots
from tallystick.errors import BadInput, shown
from tallystick.files.local import open_regular

LARGEST_TEXT = 1_000_000  # bytes or characters; a book's chapter has 100,000
MOST_STATEMENTS = 3_000
MANY = f"is not read: a text is judged up to its first {MOST_STATEMENTS:,} equations"
LONGEST_ROW = 1_000  # characters of a row with columns separated by blanks; a longer line is prose
LEAST_PROSE = 20  # words; a shorter text without an equation is refused as a mistake
NEAR_ROUNDED = 20  # 110M is within a twentieth of 108,854,784
LEAST_SAID = 1_000_000  # a smaller number in a sentence is not a model's total
MOST_PROSE = 1_000  # numbers in sentences
_HEADING = re.compile(r"\s*(?:#{1,6}\s|\\(?:sub)*section|\*\*[^*]+\*\*:?\s*$|\d{1,2}(?:\.\d{1,2}){1,3}\.?\s+[^\W\d])")
_RULE = re.compile(r"[\s|:+=_-]*")
_ARITHMETIC = re.compile(r"\d\s*(?:\*\*|[*+/^]|[xX](?=\s*\d))\s*\(?\s*\d")
_SENTENCES = re.compile(r"[.;]\s(?!\s*[-+*/=≈])|[。；]")
_CLAUSE = re.compile(r",\s(?!\s*[-+*/=≈])|，")
_COLUMNS = re.compile(r"\s*(?P<label>\S.*?[^\W\d_].*?|[^\W\d_].*?)\s{2,}(?P<value>(?:[≈~]\s*)?[^\W_].*)")
_NUMBERS = re.compile(r"\d{4}|\d[\d,. ]{3}|\d ?[KMBkmb万亿억만]")  # digits of a large number
# "n_embd, n_layer = 768, 12" of code
_SEVERAL = re.compile(r"\s*([A-Za-z_]\w*(?:\s*,\s*[A-Za-z_]\w*)+)\s*=\s*([\d_.]+(?:\s*,\s+[\d_.]+)+)\s*(?:#.*|;)?$")
_KEY = re.compile(r"""\W*["']\w+["']\s*""")  # "n_head": 12 of a config
_CELLS = re.compile(r"\s{2,}")
_SHAPE = re.compile(r"[(\[]\s*(\d+\s*(?:,\s*\d+\s*)*,?)\s*[)\]](?=\s*(?:[-+*/x×]|$))")  # (768, 3072), (768,)
_PRODUCT_BEHIND = re.compile(r"\(\s*(\d[^()]*[*×x][^()]*\d\w?)\s*\)\s*$")
_IN_LABEL = re.compile(r"\((\d[\d,]*\s*[*x×]\s*\d[\d,]*)\)\s*$")
_TIMES_BEFORE = re.compile(r"[*x]\s*(\d{1,3})\s*\([^()]*\)\s*$")
_IN = re.compile(r"(?:\s+(?:param\w*|paramètres|parámetros|parâmetros))?\s+(?:in|au|en|no)\s*$", re.IGNORECASE)
_MODEL = re.compile(r"^[A-Z].*[\dA-Z-]|-")  # GPT-2, BERT-base, LLaMA
_OF_MODEL = re.compile(r"-|mod[eè]l|модел|模型|モデル|모델|版", re.IGNORECASE)  # "the 124M model"
_WORD = re.compile(r"[^\W\d_]{3}")


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
    return Derivation(source, tuple(reader.statements), tuple(reader.unread), prose=tuple(reader.prose))


# -- statements -----------------------------------------------------------------------------------


class _Reader(Chains):
    """Reads each line: its equations, its table row, or the number that it states."""

    def read(self, line: Line) -> None:
        if len(line.text) > MOST_LINE and RELATION.search(line.text):
            self._miss(line)
        before = len(self.statements)
        if "|" not in line.plain:
            self.how = None
        if line.plain.count("|") > 1 and not _RULE.fullmatch(line.plain):
            self._row(line)
        elif several := _SEVERAL.match(line.plain):
            self._several(line, several)
        elif RELATION.search(line.plain) and not _RULE.fullmatch(line.plain):
            self._equations(line, line.plain)
            self._totals(line)
        elif re.search(r"\d", line.plain):
            self._value(line, line.plain)
            if len(self.statements) == before:
                self._totals(line)
        if len(self.statements) == before:
            heading = _HEADING.match(line.text) is not None
            if heading or line.plain.rstrip().endswith((":", "\uff1a")):
                self.heading = line.plain.strip(" #*:\uff1a")[:MOST_SHOWN]
                self.section = self.heading if heading else self.section
            if _ARITHMETIC.search(line.plain):
                self._miss(line)

        bound = BOUND.search(line.plain)
        if _NUMBERS.search(line.plain) and not bound and len(self.prose) < MOST_PROSE and not _HEADING.match(line.text):
            self._sentences(line)

    def _several(self, line: Line, match: re.Match[str]) -> None:
        """Add a statement for each variable of "n_embd, n_layer = 768, 12"."""
        names, values = ([one.strip() for one in part.split(",")] for part in match.groups())
        for name, value in zip(names, values, strict=False) if len(names) == len(values) else ():
            number = _alone(self._tokens(value))
            if number is not None:
                self._add(line, name, [Side(number)], name=name)

    def _equations(self, line: Line, text: str, label: str = "") -> None:
        """Read the chains of a text, or the number that it states without one."""
        if not self._chains(line, text, label):
            self._value(line, text, label)

    def _totals(self, line: Line) -> None:
        """Add the totals that a sentence states next to its equations: "in total 46.7B"."""
        for sentence in _SENTENCES.split(line.plain):
            said = ""
            for clause in _CLAUSE.split(sentence):
                before, said = said, f"{said}, {clause}"
                word = TOTAL.search(clause) or SUBTOTAL.search(clause)
                if word is None or RELATION.search(clause) or BOUND.search(clause):
                    continue
                pieces = self._tokens(clause[word.end() :])
                # "54,525,952 total", "124 million parameters in total"
                numbers = _said(pieces) or _said(self._tokens(_IN.sub("", clause[: word.start()]))[-1:])
                if len(numbers) == 1 and numbers[0].value >= LEAST_SUM and not computes(pieces):
                    about = "" if _adds_up(self._tokens(before), numbers[0]) else before
                    self._add(line, f"{about} {clause[: word.end()]}", [Side(numbers[0])], clause=clause)

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
            operand = any(one.kind == "operator" for one in pieces[max(0, place - 1) : place + 2])
            if operand or _MODEL.search(before) or _OF_MODEL.match(behind):
                continue
            if unit_of(pieces[place : place + 3]) in ("", "parameters"):
                side = Side(piece.number)
                text, shown = line.text[:MOST_SHOWN], readable(line.plain)[:MOST_SHOWN]
                self.prose.append(Statement(line.first, line.last, text, shown, "", self.heading, "", (side,)))

    def _value(self, line: Line, text: str, label: str = "") -> None:
        """Add a number that a line states without a relation.

        Examples: "Positions: 786,432", "that is 124M parameters in total".
        """
        words, colon, rest = text.rpartition(":")
        if _KEY.fullmatch(words) and not TOTAL.search(words):
            return  # an entry of a config
        columns = _COLUMNS.fullmatch(text) if not colon and len(text) <= LONGEST_ROW else None
        if columns:
            words, rest = columns["label"], columns["value"]
        value, *behind = _CELLS.split(rest.strip()) if columns else [rest]
        pieces = self._tokens(value)
        number = _alone(pieces)
        if number is not None and (colon or columns or label):
            inside = re.search(r"\(([^()]*)\)\s*$", words)  # "Token embedding (50257 × 768): 38,597,376"
            after = _PRODUCT_BEHIND.search(value)  # "12 blocks:  85.0M   (7.08M × 12)"
            found = [inside[1] if inside else "", after[1] if after else ""]
            product = next((how for how in map(self._product, found) if how is not None), None)
            if product is not None and inside and (times := _TIMES_BEFORE.search(words)):
                product = _several(product, int(times[1]), number)  # "Router × 3 (1,536 × 28)   129,024"
            if product is None and behind and isinstance(how := self._whole(behind[0]), Operation):
                product = Side(how)
            if product is None and (
                how := self._shapes(_CELLS.split(words)[-1], number) or self._shapes(words, number)
            ):
                product = Side(how)
            sides = [Side(number, loose=pieces[0].kind != "number")]
            if product is not None:
                sides.insert(0, product)
            self._add(line, f"{label} {words}", sides)
        elif number is not None and not words:
            self._add(line, "", [Side(number)])
        elif pieces and pieces[0].number is not None and len(_said(pieces)) == 1 and not computes(pieces):
            self._add(line, "", [Side(pieces[0].number)])  # "10,758,528   about 10.8 million" under a drawn line
        elif TOTAL.search(text) and not BOUND.search(text):
            numbers = _said(pieces)
            if len(numbers) == 1 and numbers[0].value >= LEAST_SUM and not any(p.kind == "operator" for p in pieces):
                self._add(line, f"{label} {text}", [Side(numbers[0])])

    def _product(self, text: str) -> Side | None:
        """Return the arithmetic at the start of a text, or None.

        It is sure if nothing follows it: "1,536 × 28, plus a scalar" is more than its product.
        """
        pieces = self._tokens(text) if text else []
        found = prefix(pieces, self.known)
        if found is None or not isinstance(found[0], Operation):
            return None
        return Side(found[0], sure=numbers_end(pieces) <= found[1])

    def _shapes(self, text: str, number: Number) -> Operation | None:
        """Return the product of the sizes in "4 x (768, 768)" if it equals the number, else None.

        A shape may describe the weight alone, without its bias.
        """
        start = _SHAPE.search(text)
        if start is None:
            return None
        written = _SHAPE.sub(lambda shape: "(" + re.sub(r"\s*,\s*(?=\d)", "*", shape[1]).rstrip(", ") + "*1)", text)
        pieces = self._tokens(written)
        found = prefix(pieces, ()) or suffix(pieces, ())
        if found is None or not isinstance(found[0], Operation):
            return None
        value = alone(number, loose=True)
        return found[0] if value is not None and evaluate(found[0], {}).meets(value) else None

    def _row(self, line: Line) -> None:
        """Read a table row "| label | product | value |".

        A cell that holds an equation is read like a line.
        """
        cells = [cell.strip() for cell in line.plain.strip().removeprefix("|").removesuffix("|").split("|")]
        wholes = [self._whole(cell) for cell in cells]
        numbered = [side for side in wholes if isinstance(side, Number)]
        for place, cell in enumerate(cells):
            if wholes[place] is None:
                wholes[place] = next((how for number in numbered if (how := self._shapes(cell, number))), None)
        if isinstance(wholes[0], Number) and _WORD.search(cells[0]) and any(wholes[1:]):
            wholes[0] = None  # "| 32 layers | 32 × 202,383,360 | 6,476,267,520 |" begins with a label
        label = next(
            (cell for cell, side in zip(cells, wholes, strict=True) if side is None and LETTER.search(cell)), ""
        )
        equations = [cell for cell in cells if RELATION.search(cell.lstrip("≈~ "))]
        for cell in equations:
            self._equations(line, cell, "" if cell == label else label)
        if label and not any(isinstance(side, Operation) for side in wholes) and (inside := _IN_LABEL.search(label)):
            wholes[cells.index(label)] = self._whole(inside[1])  # "| Words (30522 × 768) | 23.4M |"
        products = [place for place, side in enumerate(wholes) if side is not None and not isinstance(side, Number)]
        numbers = [
            place for place, side in enumerate(wholes) if isinstance(side, Number) and not cells[place].endswith("%")
        ]
        if equations or not numbers:
            return
        if products:
            self.how = products[0]
        elif self.how in numbers and len(numbers) > 1:  # a product of one factor
            products = [self.how]
            numbers.remove(self.how)
        sides = {
            place: Side(side, loose=cells[place][0] in "≈~") for place, side in enumerate(wholes) if side is not None
        }
        behind = [place for place in numbers if products and place > products[0]]
        value = behind[0] if behind else numbers[0] if products else numbers[-1]
        row = [*products[:1], value]
        if products and sides[products[0]].loose:  # "| ≈ 12d² | 7,087,872 |": the number goes first
            row.reverse()
        self._add(line, label, [sides[place] for place in row])
        if numbers[-1] != value:  # "| W_q | 768 × 768 | 589,824 | 7,077,888 |": one layer, then all layers
            self._add(line, label, [sides[numbers[-1]]])

    def _whole(self, cell: str) -> Expression | None:
        """Return the expression if a cell is nothing but arithmetic, else None."""
        pieces = self._tokens(cell.lstrip("≈~ "))
        if len(pieces) > 2 and pieces[1].kind == "open" and pieces[-1].kind == "close" and _alone(pieces):
            return pieces[0].number  # "126,700,032 (~126.70M)"
        found = prefix(pieces, self.known)
        return found[0] if found and found[1] == len(pieces) else None


def _said(pieces: Sequence[Token]) -> list[Number]:
    """Return the numbers among some tokens.

    A number that only rounds the one before is omitted: "108,854,784, about 110M".
    """
    found: list[Number] = []
    for number in (piece.number for piece in pieces if piece.number is not None):
        near = found and number.rounded and abs(found[-1].value - number.value) * NEAR_ROUNDED <= found[-1].value
        if not near:
            found.append(number)
    return found


def _adds_up(pieces: Sequence[Token], number: Number) -> bool:
    """Return whether a number is the sum of the last numbers of some tokens.

    Example: "about 85 million, plus about 39 million of the embeddings, in total 124 million".
    """
    numbers = [piece.number for piece in pieces if piece.number is not None and piece.number.value >= LEAST_SUM]
    sums = list(
        accumulate(reversed(numbers), lambda one, other: Number(one.value + other.value, one.unit + other.unit))
    )
    return any(abs(one.value - number.value) <= (one.unit + number.unit) / 2 for one in sums[1:])


def _alone(pieces: Sequence[Token]) -> Number | None:
    """Return the only number that some tokens state, or None.

    Examples: "≈ 38.6M", "about 124M parameters", "70,553,706,496 (70.55B)".
    """
    place = 0
    while place < len(pieces) and (pieces[place].text in "≈~" or pieces[place].text.lower() in ABOUT):
        place += 1
    if place == len(pieces) or pieces[place].number is None:
        return None
    depth = 0
    for piece in pieces[place + 1 :]:
        if piece.text == "→" and not depth:
            break
        depth += (piece.kind == "open") - (piece.kind == "close")
        if not depth and piece.kind in ("number", "operator", "relation"):
            return None
    return pieces[place].number


def _several(product: Side, times: int, number: Number) -> Side:
    """Return a product, taken several times if that is the number."""
    both = Operation(("*",), (Number(Fraction(times)), product.expression))
    try:
        fits = evaluate(both, {}).exact == number.value
    except Undefined:  # it holds variables
        return product
    return product._replace(expression=both) if fits else product
