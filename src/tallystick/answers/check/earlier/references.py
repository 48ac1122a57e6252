"""Find the earlier line that a number or variable refers to, by its value and words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

from tallystick.answers.check.chain.sides import LEAST_REFERENCE
from tallystick.answers.check.chain.variables import Variables
from tallystick.answers.check.claims import Claim
from tallystick.answers.check.earlier.addends import Addends
from tallystick.answers.check.labels import KINDS, tags_of
from tallystick.answers.check.terms import Term, sizes_in, total
from tallystick.derivations.arithmetic import Expression, Name, Number, Operation, Value, exactly, is_sum
from tallystick.derivations.statements import SUBTOTAL, Derivation, Statement

MOST_NEAR = 20  # statements above a number that may round one of theirs
LEAST_WIDTH = 64  # of a matrix; a smaller factor is a count of layers or heads
MOST_VAGUE = 100  # a number whose last digit is more than 1/100 of it is a sum by chance


class References:
    """The numbers of the statements so far, and where each of them stands."""

    def __init__(self, derivation: Derivation, so_far: Addends, variables: Variables) -> None:
        self.derivation = derivation
        self.so_far = so_far
        self.variables = variables
        self.by_value: dict[Fraction, list[int]] = {}
        self.small: dict[Fraction, list[int]] = {}  # the same for addends below LEAST_REFERENCE
        self.corrections: dict[Fraction, set[Fraction]] = {}  # corrected values of each stated number
        self.any_rounded = False  # a line so far rounds its result
        self.all_right = True  # no statement so far has a corrected value
        self.by_words: dict[tuple[Fraction, object], int] = {}
        self.widths = set[Fraction]()  # the sizes of products with a count too
        self.about = frozenset[str]()  # tags of the current statement's label
        self.sizes: dict[Fraction, int] = {}  # the first statement that has each number as a size of a matrix

    def record(self, place: int, claim: Claim, statement: Statement) -> None:
        """Record the number of a statement, so that later ones may refer to it."""
        if claim.adds and not claim.kind and claim.stated < LEAST_REFERENCE:
            self.small.setdefault(claim.stated, []).append(place)
        if not claim.defines and abs(claim.stated) >= LEAST_REFERENCE:
            for value in {claim.stated, claim.true}:  # later lines may go on with the right number
                self.by_value.setdefault(value, []).append(place)
            self.any_rounded = self.any_rounded or (claim.expression is not None and claim.is_rounded)
            near = claim.right and not (claim.is_vague or claim.carried)  # "d_ff = 11008 ≈ 8/3 × 4096" stays 11008
            self.corrections.setdefault(claim.stated, set()).add(claim.stated if near else claim.true)
            self.all_right = self.all_right and (near or claim.stated == claim.true)
            self.by_words |= dict.fromkeys(_words(claim, statement), place)
            sizes, counted = _sizes(claim.expression)
            self.widths.update(sizes)
            for size in () if counted else sizes:
                self.sizes.setdefault(size, place)

    def corrected(self, number: Number) -> Value | None:
        """Return the corrected value of a number that is an earlier line's wrong result."""
        if self.all_right or number.value < LEAST_REFERENCE:
            return None
        corrected = self.corrections.get(number.value, set())
        return exactly(next(iter(corrected))) if len(corrected) == 1 and not number.rounded else None

    def unrounded(self, number: Number) -> Value | None:
        """Return a rounded number with the bounds that an earlier line gives it, or None.

        7.08M of 4 × 768² + 8 × 768² is between 7,077,888 and 7,080,000.
        """
        if not number.rounded or number.value < LEAST_REFERENCE:
            return None
        equal = self.by_value.get(number.value, [])[-MOST_NEAR:]
        lines = [self.so_far.at(place) for place in equal] or self._rounded_to(number)
        known = [line for line in lines if _is_exact(line) and line.right]
        if lines and lines[-1] not in known:
            return None  # it goes on from the last line, which only rounds
        exact = [one for line in known if not line.carried for one in (line.true, line.stated, *self._sums(line))]
        if not exact:
            return None
        return Value(number.value, min(*exact, number.value), max(*exact, number.value))

    def _sums(self, claim: Claim) -> Sequence[Fraction]:
        """Return the sum of the numbers that the addends of a sum round, or its bounds.

        "67M + 135M ≈ 202M" is 202,375,168 if lines above have 67,108,864 and 135,266,304. If these
        add rounded numbers themselves, or no line has them, it is any number that 202M rounds.
        """
        added = _addends(claim)
        lines = [self._rounded_to(number) for number in added]
        rounds = (one for found in lines for one in _addends(found[-1]) if one.rounded) if all(lines) else ()
        if added and all(found and _is_exact(found[-1]) for found in lines) and not any(rounds):
            return (sum((found[-1].true for found in lines), Fraction(0)),)
        half = Fraction(sum(number.unit for number in added if number.rounded), 2)
        bounds = max(claim.true - half, claim.written.low), min(claim.true + half, claim.written.high)
        return bounds if half and bounds[0] <= bounds[1] else (claim.stated,)

    def _rounded_to(self, number: Number) -> list[Claim]:
        """Return the last statements with the only number that rounds to this one, or []."""
        found = [
            claim
            for claim in self.so_far.claims[-MOST_NEAR:]
            if claim is not None
            and any(abs(one - number.value) * 2 <= number.unit for one in (claim.true, claim.stated))
        ]
        return found if len({claim.true for claim in found}) == 1 and all(claim.right for claim in found) else []

    def exact(self, number: Number) -> Value | None:
        """Return the number of the earlier line that a rounded number rounds, or None."""
        bounds = self.unrounded(number)
        return None if bounds is None else exactly(bounds.low if bounds.low != number.value else bounds.high)

    def term(self, node: Number | Name) -> Term | None:
        """Return the term of the earlier line that produced a number or defined a variable."""
        if isinstance(node, Name):
            place = self.variables.origin.get(node.name)
        elif node.value < LEAST_REFERENCE:
            return None
        elif node.rounded:
            return self._rounded(node)
        else:
            places = self.by_value.get(node.value, [])
            while len(places) > 1 and self.so_far.at(places[0]).used:
                places.pop(0)  # equal numbers on several lines: use each once, then the last
            place = places[0] if places else None
            if place is None:
                above = self.so_far.summed(exactly(node.value))
                for earlier in above:
                    self.so_far.use(earlier)
                return total(self.so_far.terms(above)) if above else None
        if place is None or self.so_far.at(place).defines:
            return None
        if isinstance(node, Number) and self._is_size(node, place):
            return None
        self.so_far.use(place)
        return self.so_far.at(place).term

    def _is_size(self, number: Number, place: int) -> bool:
        """Return whether a number is a size, and by chance the result of a line about other parts.

        Examples: a vocabulary of 16,384 above the line; the width of an MLP in "its biases: 3072 +
        768", below "4 × 768 = 3,072" biases of attention.
        """
        about, line = self.about - KINDS, tags_of(self.derivation.statements[place].label) - KINDS
        other = number.value in self.widths and bool(about and line) and about.isdisjoint(line)
        return other or self.sizes.get(number.value, place) < place

    def _rounded(self, node: Number) -> Term | None:
        """Return a rounded number as the term of the earlier line that rounds its result to it.

        "12 × 7.1M" goes on from "one block ≈ 7.1M". The term has the number as written; its spread
        reaches to what the line computed.
        """
        equal = self.by_value.get(node.value, [])[-MOST_NEAR:]
        lines = ((place, self.so_far.at(place)) for place in reversed(equal))
        place, one = next(((place, line) for place, line in lines if line.term is not None and line.right), (0, None))
        if one is None or one.term is None:
            return self._summed(node)
        if len(self.by_value[node.value]) == 1:
            self.so_far.use(place)
        away = node.value - one.term.value
        parts = one.term.parts
        if away and parts:
            parts = (*parts, Term(away, labels=one.term.labels[:1], line=one.term.line, rest=True))
        spread = abs(away) + one.term.spread or node.unit / 2
        return one.term._replace(value=node.value, spread=spread, factors=(), parts=parts)

    def _summed(self, node: Number) -> Term | None:
        """Return a rounded number as the sum of the last lines, if it is that: "28 × 12.4M"."""
        if node.unit * MOST_VAGUE > node.value:
            return None
        stated = Value(node.value, node.value - node.unit / 2, node.value + node.unit / 2)
        above = self.so_far.summed(stated)
        if not above:
            return None
        self.so_far.use(*above)
        terms = total(self.so_far.terms(above))
        away = node.value - terms.value
        parts = (
            (*terms.parts, Term(away, line=self.derivation.statements[above[-1]].line, rest=True))
            if away
            else terms.parts
        )
        return terms._replace(value=node.value, spread=max(terms.spread, node.unit / 2), factors=(), parts=parts)

    def use_small(self, claim: Claim) -> None:
        """Mark small results of earlier lines as used by a sum: "128 + 32,768" of norms."""
        if isinstance(claim.expression, Operation) and claim.expression.symbols[0] in "+-":
            sizes = sizes_in(claim.expression)
            numbers = Counter(part.value for part in claim.expression.parts if isinstance(part, Number))
            products = {size.value for size in sizes if isinstance(size, Number)}
            # "192 + 192" of a norm adds its two halves, and no earlier line.
            small = [value for value, times in numbers.items() if times == 1 and value not in products]
            for value in (one for one in small if one < LEAST_REFERENCE):
                places = self.small.get(value, [])
                while places and self.so_far.at(places[-1]).used:
                    places.pop()
                self.so_far.use(*places[-1:])

    def stated_before(self, claim: Claim, statement: Statement) -> int | None:
        """Return the earlier line with the same number and words, if the number is not computed."""
        if SUBTOTAL.search(statement.label) and not tags_of(statement.label):
            return None  # each item has its own
        found = (self.by_words[key] for key in _words(claim, statement) if key in self.by_words)
        lines = self.derivation.statements
        # Two equal rows under one heading are distinct, such as the norms of a layer.
        apart = (place for place in found if lines[place].heading != statement.heading)
        return next(apart, None)


def _is_exact(claim: Claim) -> bool:
    """Return whether a claim gives more than a rounded number: its formula, or all digits."""
    return claim.expression is not None or not claim.is_rounded


def _addends(claim: Claim) -> Sequence[Number]:
    """Return the addends of a sum of numbers: none of any other claim."""
    parts = claim.expression.parts if claim.expression is not None and is_sum(claim.expression) else ()
    numbers = [part for part in parts if isinstance(part, Number)]
    return numbers if len(numbers) == len(parts) else ()


def _sizes(product: Expression | None) -> tuple[Sequence[Fraction], bool]:
    """Return the large sizes of "2 × 768 × 3072", and whether a count is among its factors.

    There are none in "12 × 7,087,872".
    """
    if not (isinstance(product, Operation) and set(product.symbols) == {"*"}):
        return (), False
    factors = (part for part in product.parts if isinstance(part, Number) and part.unit == 1)
    numbers = [factor.value for factor in factors if factor.value != 1]  # a shape, "(384, 1152)", has a factor of 1
    sizes = [number for number in numbers if number >= LEAST_WIDTH]
    large = [size for size in sizes if size >= LEAST_REFERENCE] if len(sizes) > 1 else []
    return large, len(sizes) < len(numbers)


def _words(claim: Claim, statement: Statement) -> list[tuple[Fraction, object]]:
    """Return the number paired with its label, and with the tags of its label."""
    words: list[object] = [statement.label.lower(), tags_of(statement.label) or None]
    return [(claim.stated, word) for word in words if word is not None]
