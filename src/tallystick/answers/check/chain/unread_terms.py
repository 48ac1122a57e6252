"""Tell whether a line has terms that its equation was read without: "7.09M (× 12) = 85.1M"."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

from tallystick.answers.check.chain.readings import Readings
from tallystick.answers.check.chain.sides import LEAST_REFERENCE, numbers_in
from tallystick.answers.check.chain.wording import counted
from tallystick.answers.check.claims import counts_operations, measures
from tallystick.derivations.arithmetic import Expression, Number, Operation, Value, alone, exactly
from tallystick.derivations.expressions.phrases import is_count
from tallystick.derivations.expressions.tokens import tokens
from tallystick.derivations.statements import Derivation, Side, Statement

MOST_TERMS = 12  # of a line
MOST_ABOVE = 12  # lines up to what heads a list
MOST_NAMED = 8  # parts of a model
MOST_TIMES = 1_000  # for a count
LONGEST = 400  # characters; a longer line is prose
_REMARK = re.compile(r"\(([^()\d]*)\)\s*\Z")
_JOINTS = re.compile(r",?\s*\b(?:and|und|et|y|e|и|og|en|i)\b|[,、/·&+=和与及]|(?<=\w)[と와과](?=\w|\s)", re.IGNORECASE)
_PAIR = re.compile(r"\b(?:pair|paar|paire|par|пара)\b|一对|ペア|쌍", re.IGNORECASE)
_DIGITS = re.compile(r"\d[\d,.]*")
_RELATION = re.compile(r"[=≈→]|->")
_BIAS = re.compile(r"\bbias(?:es)?\b|偏置|バイアス|편향|\bbiais\b|\bsesgo|смещени", re.IGNORECASE)
_MEASURED = re.compile(r"\b(?:\w*FLOPs?|MACs?|bytes?|B?FP?(?:16|32|64)|U?I(?:NT)?(?:8|16|32|64))\b", re.IGNORECASE)
_PER_WEIGHT = frozenset(map(Fraction, (2, 4, 6, 8)))  # bytes of a weight, or operations with it
# "7,087,872 per layer = 85,054,464 total"
_PER = re.compile(
    r"\b(?:per|each|every|pro|je|par|chaque|por|cada)\b|/ ?(?:layer|block)|[每各]|ごと|あたり|[층당]|на (?:каждый|один)",
    re.IGNORECASE,
)


class UnreadTerms:
    """The numbers and words of a line that its equation was read without."""

    def __init__(self, readings: Readings, derivation: Derivation) -> None:
        self.readings = readings
        self.derivation = derivation

    def explain(self, statement: Statement, left: Side, right: Side, *, asides: bool) -> bool:
        """Return whether a number is what its side comes to with terms that stand before it.

        These are a factor, an addend, what is taken away, or a bias for each output. They may stand
        in parentheses, behind words or before a comma.
        """
        line, number = statement.plain, next(numbers_in(right.expression), None)
        stated = alone(right.expression, loose=right.loose) or self.readings.value(right.expression, asides)
        if number is None or stated.exact < LEAST_REFERENCE or len(line) > LONGEST:
            return False
        side, whole = left.expression, number.unit == 1
        own = alone(side, loose=False) or exactly(self.readings.value(side, asides).exact)
        if isinstance(side, Operation) and (
            any(own.times(exactly(count)).meets(stated) for count in self._counts(statement, whole=whole))
            or self._adds_bias(statement, side, own, stated)
            or _takes_some(side, own, stated)
        ):
            return True
        if isinstance(side, Number) and _PER.search(line) and _takes_layers(own.exact, stated):
            return True
        others = self._others(line, left, number)
        repeated = "+" not in line and _is_repeated(side, own, others, stated)
        return repeated or _is_made(own, others, stated)

    def _counts(self, statement: Statement, *, whole: bool) -> set[Fraction]:
        """Return how many times the words around a product may take it.

        Examples: "Q, K and V are 1024 × 1024", "a pair of 1024 × 4096", under "Over 12 layers",
        "FLOPs per token" or in a row with "F32". Headings count for `whole` numbers only.
        """
        line = statement.plain
        names = [_DIGITS.split(line, maxsplit=1)[0], _remark(line)] if "+" not in line else []
        found = set[Fraction]()
        if whole:
            title = self._title(statement)
            names += [title] if names else []
            found = counted(f"{title} {statement.section}", digits=True)
            if measures(statement) or counts_operations(statement) or _MEASURED.search(line):
                found |= _PER_WEIGHT
        named = (2 if _PAIR.search(words) else 1 + len(_JOINTS.findall(words)) for words in names)
        return found | {Fraction(count) for count in named if 1 < count <= MOST_NAMED}

    def _adds_bias(self, statement: Statement, side: Operation, own: Value, stated: Value) -> bool:
        """Return whether a number has one size of a product more, and the text speaks of biases."""
        words = f"{statement.plain} {self._title(statement)} {statement.section}"
        more = stated.exact - own.exact if stated.is_exact and side.symbols == ("*",) else 0
        return more in {one.value for one in numbers_in(side)} and _BIAS.search(words) is not None

    def _title(self, statement: Statement) -> str:
        """Return the heading of a statement, or else the last line above it without an equation."""
        above = self.derivation.lines[max(0, statement.line - 1 - MOST_ABOVE) : statement.line - 1]
        return statement.heading or next(
            (one for one in reversed(above) if one.strip() and not _RELATION.search(one)), ""
        )

    def _others(self, line: str, left: Side, number: Number) -> list[Number]:
        """Return the numbers before another one that its side has not, the nearest first.

        The counts behind it come before these.
        """
        pieces = tokens(line, dots=self.derivation.dots)
        end = next((place for place in range(len(pieces) - 1, 0, -1) if pieces[place].number == number), 0)
        counts = [one.number for one in pieces[end + 1 :] if is_count(one.number)]  # "= 1,474,560,000 for all 48"
        while end and pieces[end].kind != "relation":
            end -= 1
        begin = next((place for place in range(end - 1, -1, -1) if pieces[place].kind == "relation"), 0)
        own = Counter(one.value for one in numbers_in(left.expression))
        others = [one for one in counts if one is not None] if end else []
        for piece in reversed(pieces[begin:end]):
            one = piece.number
            if one is not None and own[one.value]:
                own[one.value] -= 1
            elif one is not None:
                others.append(one)
        return others[:MOST_TERMS]


def _remark(line: str) -> str:
    """Return the words in parentheses before a relation: "768 × 768 (q, k, v, o) → 2,359,296"."""
    remark = _REMARK.search(_RELATION.split(line, maxsplit=1)[0])
    return remark[1] if remark else ""


def _takes_some(side: Operation, own: Value, stated: Value) -> bool:
    """Return whether a slash stands for "of": "120 / 128 experts × 48 layers = 5,760"."""
    by = [part for symbol, part in zip(side.symbols, side.parts[1:], strict=True) if symbol == "/"]
    return "*" in side.symbols and any(
        isinstance(part, Number) and own.times(exactly(part.value)).meets(stated) for part in by
    )


def _takes_layers(own: Fraction, stated: Value) -> bool:
    """Return whether a number is a whole multiple of the one before it: "N per layer = M"."""
    times = stated.exact / own if own and stated.is_exact else Fraction(0)
    return times.denominator == 1 and 1 < times <= MOST_TIMES


def _is_repeated(side: Expression, own: Value, others: Sequence[Number], stated: Value) -> bool:
    """Return whether the other numbers repeat a product: "Q 768×768, K 768×768, V 768×768 = …"."""
    once, rest = (Counter(one.value for one in numbers) for numbers in (numbers_in(side), others))
    times = len(others) // max(1, once.total())
    same = rest == Counter({value: count * times for value, count in once.items()})
    return times > 0 and same and own.times(exactly(times + 1)).meets(stated)


def _is_made(own: Value, others: Sequence[Number], stated: Value) -> bool:
    """Return whether a value and some numbers, the nearest first, make another value."""
    values = [alone(one, loose=False) or exactly(one.value) for one in others]
    for other in values:
        counts = other.is_exact and 1 < other.exact <= MOST_TIMES
        apart = own.less(other) if own.exact > other.exact else other.less(own)
        if apart.meets(stated) or (counts and own.times(other).meets(stated)):
            return True
    large = [one for one in values if one.exact >= LEAST_REFERENCE]
    for addends in (values, large):
        added = own
        for one in addends:
            added = added.plus(one)
            if added.meets(stated):
                return True
    return False
