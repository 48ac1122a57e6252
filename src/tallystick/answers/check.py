"""A derivation judged: which of its equations are wrong, what each number is in the model, what the whole leaves out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Any

from tallystick.answers.coverage import Omission, omissions
from tallystick.answers.quantities import Quantities, Quantity, tags_of
from tallystick.answers.terms import Term, labelled, term_of, total
from tallystick.arithmetic import Expression, Name, Number, Operation, Undefined, Value, alone, evaluate, exactly
from tallystick.derivation import Derivation, Statement, Unread
from tallystick.errors import BadInput
from tallystick.ledger import Ledger

MOST_SUMMED = 500  # lines above a total that stands alone
LEAST_REFERENCE = 1000  # a smaller number in a sum is a size, not the result of an earlier line

_TOTAL = re.compile(r"\b(?:totals?|altogether|in all|overall|sum)\b|^N$", re.IGNORECASE)
_NOT_PARAMETERS = re.compile(
    r"\b(?:bytes?|memory|[KMG]i?B|flops?|macs?|cache|gradients?|optimi[sz]er|activations?|tokens per|seconds|gpus?)\b",
    re.IGNORECASE,
)
_PARTIAL = frozenset({"one", "bias", "scale", "shift"})


@dataclass(frozen=True)
class Equation:
    """Two sides of a chain that stand next to each other.

    Numbers are exact: integers where they are whole. An equation that is right in itself and uses a wrong number of an
    earlier line is `correct`, and `carried` is by how much the earlier error makes it too large.
    """

    line: int
    last_line: int  # where an equation over several lines ends
    text: str
    left: int | float
    right: int | float
    correct: bool
    should_be: int | float | None  # what both sides would be, were they right; None where they are
    carried: int | float
    matches: str | None  # what has so many parameters in the model
    names: tuple[str, ...]  # of its tensors, with * for the numbers of their layers


@dataclass(frozen=True)
class Check:
    """What is right and wrong in a derivation.

    ``total_claimed + arithmetic + rounding + unexplained`` and the parameters of the `omissions` sum to `total_true`.
    """

    source: str
    against: str | None
    equations: tuple[Equation, ...]
    omissions: tuple[Omission, ...]
    total_line: int | None
    total_claimed: int | float | None  # None where the text states no total
    total_true: int | None  # None where there is no model
    arithmetic: int | float = 0  # what mends the errors of arithmetic in the total
    rounding: int | float = 0  # what a total that is rounded as written lacks
    unexplained: int | float = 0
    unread: tuple[Unread, ...] = field(default=())

    @property
    def correct(self) -> bool:
        """Whether every equation is right and the total is the model's."""
        return all(equation.correct for equation in self.equations) and not (
            self.arithmetic or self.unexplained or self.omissions
        )

    def to_dict(self) -> dict[str, Any]:
        """The JSON of ``tallystick check``: keys are a contract, added to and never renamed."""
        return {
            "source": self.source,
            "against": self.against,
            "correct": self.correct,
            "equations": [{**vars(equation), "names": list(equation.names)} for equation in self.equations],
            "omissions": [omission.to_dict() for omission in self.omissions],
            "total_line": self.total_line,
            "total_claimed": self.total_claimed,
            "total_true": self.total_true,
            "arithmetic": self.arithmetic,
            "rounding": self.rounding,
            "unexplained": self.unexplained,
            "unread": [unread._asdict() for unread in self.unread],
        }


def check(derivation: Derivation, ledger: Ledger | None, constants: Mapping[str, int]) -> Check:
    """Judge every equation of a derivation, and its total.

    Args:
        derivation: the statements of a text.
        ledger: the model that it is about; None judges the arithmetic alone.
        constants: the values of a config's keys, under each name that the text may use.
    """
    judge = _Judge(derivation, Quantities(ledger) if ledger is not None else None, constants)
    for place, statement in enumerate(derivation.statements):
        try:
            judge.read(place)
        except BadInput as error:
            raise BadInput(f"{derivation.source}, line {statement.line}: {error}") from None
    return judge.answer(ledger)


@dataclass
class _Claim:
    """What a statement comes to: as written, and with the errors of earlier lines and its own mended."""

    stated: Fraction
    true: Fraction
    expression: Expression | None  # its first side that computes something
    side: Expression  # the one that `stated` is the value of
    asides: bool = False
    term: Term | None = None
    used: bool = False  # by a later line
    defines: bool = False  # a variable, as one plain number
    right: bool = True  # each of its sides agrees with the next
    carried: Fraction = Fraction(0)  # what errors of earlier lines make of it


class _Judge:
    """Statements in their order, with what the earlier ones have defined and computed."""

    def __init__(self, derivation: Derivation, quantities: Quantities | None, constants: Mapping[str, int]) -> None:
        self.derivation = derivation
        self.quantities = quantities
        self.stated = {name: exactly(value) for name, value in constants.items()}
        self.true = dict(self.stated)
        self.origin: dict[str, int] = {}  # the statement that gave a variable its value
        self.claims: list[_Claim | None] = []
        self.by_value: dict[Fraction, list[int]] = {}
        self.mended: dict[Fraction, set[Fraction]] = {}  # what should stand where a number does
        self.said: dict[tuple[Fraction, object], int] = {}
        self.equations: list[Equation] = []
        self.unread = list(derivation.unread)
        self.matched: set[Quantity | None] = set()

    # -- one statement ----------------------------------------------------------------------------

    def read(self, place: int) -> None:
        """Judge a statement, and keep what it comes to."""
        statement = self.derivation.statements[place]
        sides = self._sides(statement)
        if not sides:
            self.claims.append(None)
            return
        asides = self._reading(sides)
        pairs = [
            (left, right, self._agree(left[0], right[0], loose=right[1], asides=asides))
            for left, right in pairwise(sides)
        ]
        claim = self._claim(sides, asides=asides, right=all(agree for *_, agree in pairs))
        claim.defines = bool(statement.name) and claim.expression is None
        self.claims.append(claim)
        claim.term = self._term(claim, statement)
        for number, (left, right, agree) in enumerate(pairs):
            self._equation(place, statement, claim, left[0], right[0], agree, last=number == len(pairs) - 1)
        if not pairs and claim.expression is None and self._is_total(statement):
            self._implied_sum(place, statement, claim)
        if statement.name:
            self.stated[statement.name] = exactly(claim.stated)
            self.true[statement.name] = exactly(claim.true)
            self.origin[statement.name] = place
        if place and not pairs and self.derivation.statements[place - 1][:4] == statement[:4]:
            self._used(place - 1)  # a table's row for one layer, and for all
        if not claim.defines and abs(claim.stated) >= LEAST_REFERENCE:
            self.by_value.setdefault(claim.stated, []).append(place)
            self.mended.setdefault(claim.stated, set()).add(claim.true)
            self.said |= dict.fromkeys(self._words(claim, statement), place)

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
        if found and isinstance(found[0][0], Name) and (origin := self.origin.get(found[0][0].name)) is not None:
            claim = self.claims[origin]
            if claim is None or claim.defines or (len(found) > 1 and isinstance(found[1][0], Operation)):
                return found[1:]
        return found

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
        return one.low <= other.high and other.low <= one.high

    def _claim(self, sides: Sequence[tuple[Expression, bool]], *, asides: bool, right: bool) -> _Claim:
        exact = (side for side, loose in reversed(sides) if _is_whole(side) and not loose)
        side = next(exact, sides[-1][0])
        stated = self._value(side, asides).exact
        computed = next((side for side, _ in sides if isinstance(side, Operation)), None)
        true = evaluate(computed or side, self.true, asides=asides, replaced=self._mended).exact
        carried = self._value(computed or side, asides).exact - true
        if not right and self.quantities and self.quantities.of(stated) and not self.quantities.of(true):
            true = stated  # the result is the model's: a number on the other side is mistyped
        return _Claim(stated, true, computed, side, asides, right=right, carried=carried)

    def _mended(self, number: Number) -> Value | None:
        """What a number that is the wrong result of an earlier line should be."""
        mended = self.mended.get(number.value, set())
        return exactly(next(iter(mended))) if len(mended) == 1 and not number.rounded else None

    def _equation(
        self,
        place: int,
        statement: Statement,
        claim: _Claim,
        left: Expression,
        right: Expression,
        agree: bool,
        *,
        last: bool,
    ) -> None:
        one, other = self._value(left, claim.asides).exact, self._value(right, claim.asides).exact
        computed = isinstance(right, Operation) and isinstance(left, Number)  # "38,597,376 = 50257 × 768"
        right_one = other if computed or claim.true == other else one
        match = self._match(claim, statement)
        self.equations.append(
            Equation(
                statement.line,
                statement.last,
                statement.text,
                _number(one),
                _number(other),
                agree,
                None if agree else _number(right_one),
                _number(claim.carried if last and agree else Fraction(0)),
                match.what if match else None,
                match.names if match else (),
            )
        )

    def _match(self, claim: _Claim, statement: Statement) -> Quantity | None:
        if self.quantities is None or claim.defines:
            return None
        factors = tuple(sorted(factor for factor in (claim.term.factors if claim.term else ()) if factor != 1))
        found = self.quantities.best(claim.true, (statement.label, statement.heading), factors, self.matched)
        self.matched.add(found)
        return found

    # -- terms ------------------------------------------------------------------------------------

    def _term(self, claim: _Claim, statement: Statement) -> Term:
        def value(node: Expression) -> Value:
            return evaluate(node, self.true, asides=claim.asides, replaced=self._mended)

        before = self._said_before(claim, statement)
        if before is not None:
            self._used(before)
        if claim.expression is None:
            found = (self._claim_at(before).term if before is not None else None) or Term(claim.true)
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
            while len(places) > 1 and self._claim_at(places[0]).used:
                places.pop(0)  # the same number on several lines: each is meant once, and the last one after that
            place = places[0] if places else None
        if place is None or self._claim_at(place).defines:
            return None
        self._used(place)
        return self._claim_at(place).term

    def _said_before(self, claim: _Claim, statement: Statement) -> int | None:
        """The earlier line that a number with no computation restates: the same under the same words."""
        return next((self.said[key] for key in self._words(claim, statement) if key in self.said), None)

    def _words(self, claim: _Claim, statement: Statement) -> list[tuple[Fraction, object]]:
        """A number with its label, and with what the label is about."""
        words: list[object] = [statement.label.lower(), tags_of(statement.label) or None]
        return [(claim.stated, word) for word in words if word is not None]

    def _claim_at(self, place: int) -> _Claim:
        claim = self.claims[place]
        assert claim is not None  # noqa: S101
        return claim

    def _used(self, place: int) -> None:
        self._claim_at(place).used = True

    # -- the total --------------------------------------------------------------------------------

    def _is_total(self, statement: Statement) -> bool:
        words = statement.label or statement.name or statement.heading
        if _NOT_PARAMETERS.search(words) or _NOT_PARAMETERS.search(statement.text):
            return False
        return bool(_TOTAL.search(words) or _TOTAL.search(statement.name))

    def _implied_sum(self, place: int, statement: Statement, claim: _Claim) -> None:
        """A total that stands alone is that of the lines above: of all, or of the last few where that fits."""
        above = [
            earlier
            for earlier in range(max(0, place - MOST_SUMMED), place)
            if (other := self.claims[earlier]) is not None
            and not other.used
            and not other.defines
            and other.stated.denominator == 1
            and not _NOT_PARAMETERS.search(self.derivation.statements[earlier].text)
        ]
        sums = Fraction(0)
        for start in range(len(above) - 1, -1, -1):
            sums += self._claim_at(above[start]).stated
            if sums == claim.stated and len(above) - start > 1:
                above = above[start:]
                break
        whole = not tags_of(statement.label)
        fits = sums == claim.stated
        known = self.quantities is not None and claim.stated == self.quantities.total
        if len(above) < 2 or not (fits or (whole and not known)):
            return
        for earlier in above:
            self._used(earlier)
        terms = [term for earlier in above if (term := self._claim_at(earlier).term) is not None]
        claim.term = labelled(total(terms), (statement.label,), statement.line)
        claim.true, claim.right = claim.term.value, fits
        sides = [Number(sums), claim.side]
        self._equation(place, statement, claim, sides[0], sides[1], fits, last=True)

    def _total(self) -> int | None:
        """The statement that is the total of the text."""
        named = [
            place
            for place, claim in enumerate(self.claims)
            if claim is not None
            and self._is_total(self.derivation.statements[place])
            and not (tags_of(self.derivation.statements[place].label) - {"all", "block"})
        ]
        sums = [
            place
            for place, claim in enumerate(self.claims)
            if claim is not None
            and not claim.used
            and claim.term is not None
            and len(claim.term.parts) > 1
            and not _NOT_PARAMETERS.search(self.derivation.statements[place].text)
            and "one" not in tags_of(self.derivation.statements[place].label)
        ]
        return named[-1] if named else sums[-1] if sums else None

    def answer(self, ledger: Ledger | None) -> Check:
        """All of it."""
        place = self._total()
        claim = None if place is None else self.claims[place]
        missing: tuple[Omission, ...] = ()
        arithmetic = rounding = unexplained = Fraction(0)
        if claim is not None:
            off = claim.true - claim.stated
            arithmetic = -claim.carried if claim.right else off
            rounding = off - arithmetic
            if ledger is not None and self.quantities is not None:
                term = claim.term or Term(claim.true)
                if abs(ledger.total - term.value) <= term.spread:  # rounded terms, and nothing left out
                    rounding = ledger.total - claim.stated - arithmetic
                else:
                    missing = omissions(term, self.quantities) or ()
                    unexplained = ledger.total - claim.true - sum(omission.parameters for omission in missing)
        return Check(
            self.derivation.source,
            None if ledger is None else ledger.source,
            tuple(self.equations),
            missing,
            None if place is None else self.derivation.statements[place].line,
            None if claim is None else _number(claim.stated),
            None if ledger is None else ledger.total,
            _number(arithmetic),
            _number(rounding),
            _number(unexplained),
            tuple(sorted(self.unread)),
        )


def _has_aside(expression: Expression) -> bool:
    return isinstance(expression, Operation) and (
        "(" in expression.symbols or any(_has_aside(part) for part in expression.parts)
    )


def _is_whole(expression: Expression) -> bool:
    return isinstance(expression, Number) and not expression.rounded and expression.unit == 1


def _number(value: Fraction) -> int | float:
    return int(value) if value.denominator == 1 else float(value)
