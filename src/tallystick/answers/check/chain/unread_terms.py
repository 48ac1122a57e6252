"""Tell whether a line has terms that its equation was read without: "7.09M (× 12) = 85.1M"."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

from tallystick.answers.check.chain.readings import Readings
from tallystick.answers.check.chain.sides import LEAST_REFERENCE, numbers_in
from tallystick.derivations.arithmetic import Expression, Number, Operation, Value, alone, exactly
from tallystick.derivations.expressions.tokens import tokens, writes_dots
from tallystick.derivations.statements import Derivation, Side, Statement

MOST_TERMS = 12  # of a line
MOST_TIMES = 1_000  # for a count
LONGEST = 400  # characters; a longer line is prose
_DIGITS = re.compile(r"\d")
_BIAS = re.compile(r"\bbias(?:es)?\b|偏置|バイアス|편향|\bbiais\b|\bsesgo|смещени", re.IGNORECASE)
# "7,087,872 per layer = 85,054,464 total"
_PER = re.compile(
    r"\b(?:per|each|every|pro|je|par|chaque|por|cada)\b|/ ?(?:layer|block)|[每各]|ごと|あたり|[층당]|на (?:каждый|один)",
    re.IGNORECASE,
)


class UnreadTerms:
    """The numbers and words of a line that its equation was read without."""

    def __init__(self, readings: Readings, derivation: Derivation) -> None:
        self.readings = readings
        self.dots = writes_dots("\n".join(derivation.lines))

    def explain(self, statement: Statement, left: Side, right: Side, *, asides: bool) -> bool:
        """Return whether a number is what its side comes to with terms that stand before it.

        These are a factor, an addend, what is taken away, or a bias for each output. They may stand
        in parentheses, behind words or before a comma.
        """
        line, number = statement.plain, next(numbers_in(right.expression), None)
        stated = alone(right.expression, loose=right.loose) or self.readings.value(right.expression, asides)
        if number is None or stated.exact < LEAST_REFERENCE or len(line) > LONGEST:
            return False
        own = alone(left.expression, loose=False) or exactly(self.readings.value(left.expression, asides).exact)
        if (
            (_PER.search(line) and _takes_layers(left.expression, own.exact, stated))
            or (_BIAS.search(line) and _adds_bias(left.expression, own, stated))
            or _takes_some(left.expression, own, stated)
        ):
            return True
        others = self._others(line, left, number)
        repeated = "+" not in line and _is_repeated(left.expression, own, others, stated)
        return repeated or _is_made(own, others, stated)

    def _others(self, line: str, left: Side, number: Number) -> list[Number]:
        """Return the numbers before another one that its side has not, the nearest first."""
        if len(_DIGITS.findall(line)) < len(str(number.value)):
            return []
        pieces = tokens(line, dots=self.dots)
        end = next((place for place in range(len(pieces) - 1, 0, -1) if pieces[place].number == number), 0)
        while end and pieces[end].kind != "relation":
            end -= 1
        begin = next((place for place in range(end - 1, -1, -1) if pieces[place].kind == "relation"), 0)
        own = Counter(one.value for one in numbers_in(left.expression))
        others = list[Number]()
        for piece in reversed(pieces[begin:end]):
            one = piece.number
            if one is not None and own[one.value]:
                own[one.value] -= 1
            elif one is not None:
                others.append(one)
        return others[:MOST_TERMS]


def _takes_some(side: Expression, own: Value, stated: Value) -> bool:
    """Return whether a slash stands for "of": "120 / 128 experts × 48 layers = 5,760"."""
    symbols, parts = (side.symbols, side.parts) if isinstance(side, Operation) and "*" in side.symbols else ((), ())
    by = (part for symbol, part in zip(symbols, parts[1:], strict=False) if symbol == "/")
    return any(isinstance(part, Number) and own.times(exactly(part.value)).meets(stated) for part in by)


def _takes_layers(side: Expression, own: Fraction, stated: Value) -> bool:
    """Return whether a number is a whole multiple of the one before it: "N per layer = M"."""
    times = stated.exact / own if own and isinstance(side, Number) and stated.is_exact else Fraction(0)
    return times.denominator == 1 and 1 < times <= MOST_TIMES


def _adds_bias(side: Expression, own: Value, stated: Value) -> bool:
    """Return whether a number has one size of a product more: "768 × 2304 (+ bias) = 1,771,776"."""
    product = isinstance(side, Operation) and side.symbols == ("*",)
    return product and any(own.plus(exactly(one.value)).meets(stated) for one in numbers_in(side))


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
