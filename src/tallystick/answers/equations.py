"""Each equation of a derivation judged, with what the lines before it have defined, computed, and got wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from itertools import islice, pairwise, product

from tallystick.answers.claims import Claim, Equation, as_number, is_total, is_whole, measures
from tallystick.answers.labels import KINDS, tags_of
from tallystick.answers.misfit import misfit
from tallystick.answers.quantities import Quantities, Quantity
from tallystick.answers.terms import Term, labelled, term_of, total
from tallystick.answers.terms import times as times_of
from tallystick.arithmetic import (
    Expression,
    Name,
    Number,
    Operation,
    Undefined,
    Value,
    alone,
    evaluate,
    exactly,
    scaled,
    ungrouped,
)
from tallystick.budget import current
from tallystick.derivation import Derivation, Statement, Unread

SCALED = (10**6, 10**9, 10**3)  # units that numbers may leave out, millions before others
LITTLE = Fraction(1, 100)  # by so much two numbers that are written out may differ, and be about the same
MOST_BEGUN = 12  # characters of a label that are looked for where a line begins
MOST_COUNTED = 999  # of something that is its label
MOST_SCOPES = 64  # ways of giving the variables of one chain values that they had before
MOST_SUMMED = 500  # lines above a total that stands alone
NEAR = 2  # a total that is not even so near to a sum is not meant as that sum
LEAST_REFERENCE = 1000  # a smaller number in a sum is a size, not the result of an earlier line

_TIMES_LABEL = re.compile(r"\s*[*×]\s*(\d{1,4})(?!\d)")  # "× 12 layers"
_COUNTED = re.compile(r"\s*\d{1,3}(?:\s+[^\W\d_]{3}|\s*[^\W\d_a-zA-Z]{2})")


class Judge:
    """Statements in their order, with what the earlier ones have defined and computed."""

    def __init__(self, derivation: Derivation, quantities: Quantities | None, constants: Mapping[str, int]) -> None:
        self.derivation = derivation
        self.place = 0  # of the statement at hand
        self.quantities = quantities
        self.stated = {name: exactly(value) for name, value in constants.items()}
        self.true = dict(self.stated)
        self.former: dict[str, list[tuple[Value, Value]]] = {}  # what variables were before, as stated and as true
        self.origin: dict[str, int] = {}  # the statement that gave a variable its value
        self.claims: list[Claim | None] = []
        self.by_value: dict[Fraction, list[int]] = {}
        self.mended: dict[Fraction, set[Fraction]] = {}  # what should stand where a number does
        self.said: dict[tuple[Fraction, object], int] = {}
        self.equations: list[Equation] = []
        self.unread = list(derivation.unread)
        self.refused: list[tuple[int, str]] = []
        self.matched: set[Quantity | None] = set()

    # -- one statement ----------------------------------------------------------------------------

    def read(self, place: int) -> None:
        """Judge a statement, and keep what it comes to."""
        self.place = place
        statement = self.derivation.statements[place]
        sides = self._meant_by(statement, self._sides(statement))
        if not sides:
            self.claims.append(None)
            return
        with self._scope(sides):
            self._judge(place, statement, sides)

    def _judge(self, place: int, statement: Statement, sides: Sequence[tuple[Expression, bool]]) -> None:
        asides = self._reading(sides)
        pairs = [
            (left, right, self._agree(left[0], right[0], loose=right[1], asides=asides))
            for left, right in pairwise(sides)
        ]
        claim = self._claim(sides, asides=asides, right=all(agree for *_, agree in pairs))
        claim.defines = bool(statement.name) and claim.expression is None
        claim.written = alone(claim.side, loose=claim.rounded) or exactly(claim.stated)
        claim.adds = not claim.defines and claim.stated.denominator == 1 and not measures(statement)
        self.claims.append(claim)
        claim.term = self._term(claim, statement)
        claim.match = self._match(claim, statement) if pairs else None
        for number, (left, right, agree) in enumerate(pairs):
            self._equation(statement, claim, left[0], right[0], agree, last=number == len(pairs) - 1)
        if (times := _TIMES_LABEL.match(statement.plain)) and not pairs:
            self._implied_product(int(times[1]), statement, claim)
        elif claim.expression is None and place:
            judged = not pairs and is_total(statement) and _begins_line(statement)
            if judged or claim.stated >= LEAST_REFERENCE:
                self._implied_sum(statement, claim, judged=judged)
        if statement.name:
            if statement.name in self.stated:
                before = self.stated[statement.name], self.true[statement.name]
                self.former.setdefault(statement.name, []).append(before)
            self.stated[statement.name] = exactly(claim.stated)
            self.true[statement.name] = exactly(claim.true)
            self.origin[statement.name] = place
        if place and not pairs and self.derivation.statements[place - 1][:4] == statement[:4]:
            self._used(place - 1)  # a table's row for one layer, and for all
        if not claim.defines and abs(claim.stated) >= LEAST_REFERENCE:
            self.by_value.setdefault(claim.stated, []).append(place)
            self.mended.setdefault(claim.stated, set()).add(claim.true)
            self.said |= dict.fromkeys(self._words(claim, statement), place)

    def refuse(self, place: int, why: str) -> None:
        """Leave out a statement that cannot be computed."""
        statement = self.derivation.statements[place]
        self.claims[place:] = [None]
        self.refused.append((statement.line, why))
        self.unread.append(Unread(statement.line, statement.text, why))

    def _sides(self, statement: Statement) -> list[tuple[Expression, bool]]:
        """The sides that have a value. A variable that gets a new plain number is not one of them: it is defined anew."""
        found = []
        for side, loose in zip(statement.sides, statement.loose, strict=True):
            try:
                evaluate(side, self.stated)
            except Undefined:  # 5 / 0
                self.unread.append(Unread(statement.line, statement.text))
                continue
            found.append((side, loose))
        if _counts(statement, found) and self._wrong(found[:2]):
            found = found[1:]
        if found and isinstance(found[0][0], Name) and (origin := self.origin.get(found[0][0].name)) is not None:
            claim = self.claims[origin]
            if claim is None or claim.defines or (len(found) > 1 and isinstance(found[1][0], Operation)):
                return found[1:]
        return found

    @contextmanager
    def _scope(self, sides: Sequence[tuple[Expression, bool]]) -> Iterator[None]:
        """While a chain is judged: the value of each variable that it goes by, which may be one that the text gave it before.

        "With V = 50304 …" holds for a sentence; that V × d is 50257 × 768 later on says which V is meant.
        """
        names = sorted({name for side, _ in sides for name in _names(side)} & self.former.keys())
        if not names or len(sides) < 2 or self._wrong(sides) == 0:
            yield
            return
        now = {name: (self.stated[name], self.true[name]) for name in names}
        choices = [[now[name], *self.former[name]] for name in names]
        for choice in islice(product(*choices), MOST_SCOPES):
            self._put(dict(zip(names, choice, strict=True)))
            if self._wrong(sides) == 0:
                break
        else:
            self._put(now)
        chosen = {name: (self.stated[name], self.true[name]) for name in names}
        yield
        self._put({name: pair for name, pair in now.items() if (self.stated[name], self.true[name]) == chosen[name]})

    def _put(self, values: Mapping[str, tuple[Value, Value]]) -> None:
        for name, (stated, true) in values.items():
            self.stated[name], self.true[name] = stated, true

    def _wrong(self, sides: Sequence[tuple[Expression, bool]]) -> int:
        """How many links of a chain are wrong, parentheses read as they fit best."""
        asides = self._reading(sides)
        pairs = pairwise(sides)
        return sum(not self._agree(left, right, loose=loose, asides=asides) for (left, _), (right, loose) in pairs)

    def _meant_by(self, statement: Statement, sides: list[tuple[Expression, bool]]) -> list[tuple[Expression, bool]]:
        """As it is meant where it is not written out: "38.6 + 85.1 = 123.7M" in millions, 12.288 for 12,288."""
        if len(sides) < 2 or not self._wrong(sides):
            return sides
        last = sides[-1][0]
        others = [[(ungrouped(side), loose) for side, loose in sides]]
        if isinstance(last, Number) and last.rounded and last.value >= LEAST_REFERENCE:
            for scale in SCALED:
                others.append([(scaled(side, scale) if _may_lack(side) else side, loose) for side, loose in sides])
        if statement.clause.lstrip().startswith("+") and self.claims and (before := self.claims[-1]) is not None:
            goes_on = Operation(("+",), (Number(before.stated), sides[0][0]))  # "a + b = c. + d = e"
            others.append([(goes_on, sides[0][1]), *sides[1:]])
        if _symbolic(sides[0][0]) and len(sides) > 2:
            others.append(sides[1:])  # the words of the formula are others than its numbers
        return next((one for one in others if not self._wrong(one)), sides)

    def _reading(self, sides: Sequence[tuple[Expression, bool]]) -> bool:
        """Whether parentheses after a number only comment on it: the reading under which less is wrong."""
        if not any(_has_aside(side) for side, _ in sides):
            return False

        def wrong(asides: bool) -> tuple[int, Fraction]:
            pairs = list(pairwise(sides))
            apart = [
                abs(self._value(left, asides).exact - self._value(right, asides).exact)
                for (left, _), (right, _) in pairs
            ]
            agree = [self._agree(left, right, loose=loose, asides=asides) for (left, _), (right, loose) in pairs]
            return agree.count(False), sum(apart, Fraction(0))

        return wrong(True) <= wrong(False)

    def _value(self, side: Expression, asides: bool, *, loose: bool = False) -> Value:
        return evaluate(side, self.stated, loose=loose, asides=asides)

    def _agree(self, left: Expression, right: Expression, *, loose: bool, asides: bool) -> bool:
        one = alone(left, loose=loose) or self._value(left, asides, loose=loose)
        other = alone(right, loose=loose) or self._value(right, asides, loose=loose)
        if _meet(one, other):
            return True
        formula = loose and isinstance(left, Number) and isinstance(right, Operation)
        if formula and abs(one.exact - other.exact) <= LITTLE * abs(one.exact):
            return True  # "7,087,872 ≈ 12 × 768²": near, and said to be no more
        ends, begins = _last_addend(left), _first_addend(right)
        if ends is left and begins is right:
            return False
        # "a + b = c + d = e", where c is a + b and e is c + d; "(q: 2 × 3 = 6 + k: 4 × 5 = 20)"
        links = [(ends, begins), (left, begins), (ends, right)]
        return any(self._value(end, asides).exact == self._value(begin, asides).exact for end, begin in links)

    def _claim(self, sides: Sequence[tuple[Expression, bool]], *, asides: bool, right: bool) -> Claim:
        exact = (side for side, loose in reversed(sides) if is_whole(side) and not loose)
        side = next(exact, sides[-1][0])
        stated = self._value(side, asides).exact
        computed = next((side for side, _ in sides if isinstance(side, Operation)), None)
        true = evaluate(computed or side, self.true, asides=asides, replaced=self._mended).exact
        carried = self._value(computed or side, asides).exact - true
        if not right and self.quantities and self.quantities.of(stated) and not self.quantities.of(true):
            true = stated  # the result is the model's: a number on the other side is mistyped
        rounded = next(loose for one, loose in sides if one is side)
        return Claim(stated, true, computed, side, asides, rounded=rounded, right=right, carried=carried)

    def _mended(self, number: Number) -> Value | None:
        """What a number that is the wrong result of an earlier line should be."""
        mended = self.mended.get(number.value, set())
        return exactly(next(iter(mended))) if len(mended) == 1 and not number.rounded else None

    def _equation(
        self,
        statement: Statement,
        claim: Claim,
        left: Expression,
        right: Expression,
        agree: bool,
        *,
        last: bool,
    ) -> None:
        one, other = self._value(left, claim.asides).exact, self._value(right, claim.asides).exact
        computed = isinstance(right, Operation) and isinstance(left, Number)  # "38,597,376 = 50257 × 768"
        mistyped = isinstance(left, Operation) and claim.true == other
        right_one = other if computed or mistyped else one
        self.equations.append(
            Equation(
                statement.line,
                statement.last,
                statement.text,
                as_number(one),
                as_number(other),
                agree,
                None if agree else as_number(right_one),
                as_number(claim.carried if last and agree else Fraction(0)),
                claim.match.what if claim.match else None,
                claim.match.names if claim.match else (),
                self._misfit(claim, statement) if last else None,
                statement.plain,
            )
        )

    def _misfit(self, claim: Claim, statement: Statement) -> str | None:
        """What the label names, where that has not this number."""
        if self.quantities is None or claim.defines or claim.is_rounded:
            return None
        found = misfit(statement.label, claim.true, self.quantities)
        return found.sentence if found else None

    def _match(self, claim: Claim, statement: Statement) -> Quantity | None:
        if self.quantities is None or claim.defines:
            return None
        factors = tuple(sorted(factor for factor in (claim.term.factors if claim.term else ()) if factor != 1))
        found = self.quantities.best(claim.true, (statement.label, statement.heading), factors, self.matched)
        self.matched.add(found)
        return found

    # -- terms ------------------------------------------------------------------------------------

    def _term(self, claim: Claim, statement: Statement) -> Term:
        def value(node: Expression) -> Value:
            return evaluate(node, self.true, asides=claim.asides, replaced=self._mended)

        if claim.expression is None:
            before = self._said_before(claim, statement)
            if before is not None:
                self._used(before)
            found = (self.claim_at(before).term if before is not None else None) or Term(claim.true)
        else:
            found = term_of(claim.expression, value, self._refers, asides=claim.asides)
        if found.value != claim.true:  # the result is right, and a number in the product is not
            found = Term(claim.true)
        return labelled(found, (statement.label or statement.name, statement.heading), statement.line)

    def _refers(self, node: Number | Name) -> Term | None:
        """The term of the earlier line whose result a number is, or that defined a variable."""
        if isinstance(node, Name):
            place = self.origin.get(node.name)
        else:
            places = self.by_value.get(node.value, []) if not node.rounded else []
            while len(places) > 1 and self.claim_at(places[0]).used:
                places.pop(0)  # the same number on several lines: each is meant once, and the last one after that
            place = places[0] if places else None
            if place is None and not node.rounded and node.value >= LEAST_REFERENCE:
                above = self._summed(exactly(node.value))
                for earlier in above:
                    self._used(earlier)
                return total(self._terms(above)) if above else None
        if place is None or self.claim_at(place).defines:
            return None
        self._used(place)
        return self.claim_at(place).term

    def _said_before(self, claim: Claim, statement: Statement) -> int | None:
        """The earlier line that a number with no computation restates: the same under the same words."""
        found = (self.said[key] for key in self._words(claim, statement) if key in self.said)
        lines = self.derivation.statements
        # Two equal rows under one heading are two: the norms of a layer.
        apart = (place for place in found if lines[place].heading != statement.heading)
        return next(apart, None)

    def _words(self, claim: Claim, statement: Statement) -> list[tuple[Fraction, object]]:
        """A number with its label, and with what the label is about."""
        words: list[object] = [statement.label.lower(), tags_of(statement.label) or None]
        return [(claim.stated, word) for word in words if word is not None]

    def claim_at(self, place: int) -> Claim:
        """What a statement that has a value comes to."""
        claim = self.claims[place]
        assert claim is not None  # noqa: S101
        return claim

    def _used(self, place: int) -> None:
        self.claim_at(place).users.append(self.place)

    def _implied_sum(self, statement: Statement, claim: Claim, *, judged: bool) -> None:
        """A number that stands alone is the sum of the last lines above it, where that fits.

        A total that is `judged` must be the sum of all of them: near to it, and not equal, it is wrong.
        """
        above = self._summed(claim.written)
        fits = bool(above)
        above = above or self._meant(statement, judged=judged)
        sums = self._sum(above)
        near = claim.stated / NEAR <= sums.exact <= claim.stated * NEAR
        if "one" in tags_of(statement.label):
            near = abs(claim.stated - sums.exact) <= LITTLE * claim.stated
        known = self.quantities is not None and claim.stated == self.quantities.total
        wrong = near and not known and not any(self.claim_at(one).is_rounded for one in above) and not claim.is_rounded
        exact = sums.exact == claim.stated and claim.stated >= LEAST_REFERENCE
        if len(above) < 2 or not (exact or (judged and fits) or (wrong and not fits)):
            return
        for earlier in above:
            self._used(earlier)
        claim.term = labelled(total(self._terms(above)), (statement.label,), statement.line)
        claim.true, claim.right = claim.term.value, fits
        claim.match = self._match(claim, statement)
        # Where only the corrected lines add up to it, the slip above is not carried on.
        goes_on = _meet(sums, claim.written)
        found = claim.true if fits and not goes_on else sums.exact
        if fits and goes_on:
            claim.carried = sum((self.claim_at(one).error for one in above), Fraction(0))
        self._equation(statement, claim, Number(found), claim.side, fits, last=True)

    def _implied_product(self, times: int, statement: Statement, claim: Claim) -> None:
        """The number behind "× 12 layers" is the line above, times 12."""
        place = next((place for place in self._unused() if self.claim_at(place).stated * times), None)
        if place is None:
            return
        one = self.claim_at(place)
        if abs(one.stated * times - claim.stated) > LITTLE * claim.stated:
            return
        self._used(place)
        factor = Number(Fraction(times))
        product = Operation(("*",), (factor, one.side))
        claim.term = labelled(
            times_of(Term(Fraction(times)), one.term or Term(one.true)), (statement.label,), statement.line
        )
        claim.true, claim.right = one.true * times, self._agree(product, claim.side, loose=claim.rounded, asides=False)
        claim.match = self._match(claim, statement)
        self._equation(statement, claim, product, claim.side, claim.right, last=True)

    def _meant(self, statement: Statement, *, judged: bool) -> list[int]:
        """The statements that a number which stands alone must be the sum of: all for a total, those of a layer for a layer."""
        about = tags_of(statement.label)
        if judged and not about:
            return list(self._unused())[::-1]
        if "one" not in about or about - KINDS:
            return []
        lines = [(place, self.derivation.statements[place]) for place in list(self._unused())[::-1]]
        return [place for place, line in lines if "one" in tags_of(line.label) | tags_of(line.heading)]

    def _unused(self) -> Iterator[int]:
        """The statements above that nothing goes on from, the last first."""
        for place in range(self.place - 1, max(-1, self.place - 1 - MOST_SUMMED), -1):
            claim = self.claims[place]
            if claim is not None and claim.adds and not claim.users:
                yield place

    def _summed(self, value: Value) -> list[int]:
        """The last of them that add up to a value, two at least."""
        found: list[int] = []
        sums, true = exactly(0), Fraction(0)
        for place in self._unused():
            claim = self.claim_at(place)
            sums, true = _plus(sums, claim.written), true + claim.true
            found.append(place)
            if len(found) > 1 and (_meet(sums, value) or value.exact == true):
                break
            if min(sums.low, true) > value.high:
                found = []
                break
        else:
            found = []
        current().step(len(found))
        return found[::-1]

    def _sum(self, places: Sequence[int]) -> Value:
        sums = exactly(0)
        for place in places:
            sums = _plus(sums, self.claim_at(place).written)
        return sums

    def _terms(self, places: Sequence[int]) -> list[Term]:
        return [term for place in places if (term := self.claim_at(place).term) is not None]


def _may_lack(side: Expression) -> bool:
    """Whether a unit may be left out in it: in a sum, and in a product with decimals; 12 × 768 × 12 is no number of millions."""
    if not isinstance(side, Operation):
        return False
    return side.symbols[0] in "+-" or any(isinstance(part, Number) and part.unit < 1 for part in side.parts)


def _symbolic(side: Expression) -> bool:
    """Whether a side has variables, and no number but small ones."""
    names = any(True for _ in _names(side))
    return names and all(number.value < LEAST_REFERENCE for number in _numbers(side))


def _numbers(expression: Expression) -> Iterator[Number]:
    if isinstance(expression, Number):
        yield expression
    elif isinstance(expression, Operation):
        for part in expression.parts:
            yield from _numbers(part)


def _begins_line(statement: Statement) -> bool:
    """Whether its label is what its line begins with, as in a list or a table: not in the middle of a sentence."""
    return statement.plain.lstrip("|#*+-• ").startswith(statement.label[:MOST_BEGUN])


def _counts(statement: Statement, sides: Sequence[tuple[Expression, bool]]) -> bool:
    """Whether a chain may begin with a number of something, which is its label: "12 blocks = 12 × 7,087,872", "batch 1 = …"."""
    if len(sides) < 2 or not isinstance(sides[0][0], Number) or sides[0][0].value > MOST_COUNTED:
        return False
    word = re.escape(statement.label.rpartition(" ")[2])
    behind_word = word[-1:].isalpha() and re.search(rf"{word} \d", statement.plain) is not None
    return behind_word or _COUNTED.match(statement.clause) is not None


def _names(expression: Expression) -> Iterator[str]:
    if isinstance(expression, Name):
        yield expression.name
    elif isinstance(expression, Operation):
        for part in expression.parts:
            yield from _names(part)


def _plus(one: Value, other: Value) -> Value:
    return Value(*(first + second for first, second in zip(one, other, strict=True)))


def _meet(one: Value, other: Value) -> bool:
    return one.low <= other.high and other.low <= one.high


def _first_addend(side: Expression) -> Expression:
    return side.parts[0] if isinstance(side, Operation) and side.symbols[0] == "+" else side


def _last_addend(side: Expression) -> Expression:
    return side.parts[-1] if isinstance(side, Operation) and side.symbols[-1] == "+" else side


def _has_aside(expression: Expression) -> bool:
    return isinstance(expression, Operation) and (
        "(" in expression.symbols or any(_has_aside(part) for part in expression.parts)
    )
