"""Judge each equation, given the variables, values and errors of the lines before it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from itertools import accumulate, islice, pairwise, product

from tallystick.answers.check.addends import MOST_SUMMED, Addends, plus
from tallystick.answers.check.claims import (
    Claim,
    Equation,
    as_number,
    counts_no_parameters,
    is_total,
    is_whole,
    measures,
)
from tallystick.answers.check.labels import KINDS, layers_of, tags_of
from tallystick.answers.check.misfit import misfit
from tallystick.answers.check.quantities import Quantities, Quantity
from tallystick.answers.check.readings import LEAST_FAR, LEAST_REFERENCE, LITTLE, Readings, Sides, names_in
from tallystick.answers.check.terms import Term, labelled, term_of, total
from tallystick.answers.check.terms import times as times_of
from tallystick.core.budget import current
from tallystick.derivations.arithmetic import (
    Expression,
    Name,
    Number,
    Operation,
    Undefined,
    Value,
    alone,
    evaluate,
    exactly,
)
from tallystick.derivations.statements import (
    BRANCH,
    DRAWN,
    HUNDREDS,
    MARGIN,
    SECTION,
    TAKEN,
    Derivation,
    Side,
    Statement,
    Unread,
)

MOST_BEGUN = 12  # characters of a label that must begin a line
MOST_COUNTED = 999  # largest count that is read as a label
MOST_SCOPES = 64  # combinations of earlier variable values tried per chain
MOST_BETWEEN = 2  # lines from one addend to the next: a rule or blank line may separate them
NEAR_SUM = 10  # a column that misses its total by more than 1/10 lacks an addend
LONGEST_RUN = 12  # parts of one addend listed below it
MOST_APART = 6  # lines from one addend to the next above a drawn line
LEAST_ADDENDS = 3
NEAR = 2  # a total off by more than this factor is not meant as that sum

_TIMES_LABEL = re.compile(r"\s*[*×x]\s*(\d{1,4})(?![\d.])")  # "× 12 layers"
_SETTING = re.compile(r"[\w.]+\s*=\s*[\d,._]+")
_LARGE = re.compile(r"\d{1,3}(?:[,._' ]\d{3})+(?!\d)|\d{5,}")
_COUNTED = re.compile(r"\s*\d{1,3}(?:\s+[^\W\d_]{3}|\s*[^\W\d_a-zA-Z]{2})")


class Judge:
    """Judges statements in text order, with the values that earlier ones defined."""

    def __init__(self, derivation: Derivation, quantities: Quantities | None, constants: Mapping[str, int]) -> None:
        self.derivation = derivation
        self.quantities = quantities
        self.stated = {name: exactly(value) for name, value in constants.items()}
        self.true = dict(self.stated)
        self.readings = Readings(self.stated)
        # Earlier values of each variable, as stated and corrected.
        self.former: dict[str, dict[tuple[Value, Value], None]] = {}
        self.origin: dict[str, int] = {}  # index of the statement that defined each variable
        self.so_far = Addends()
        self.claims = self.so_far.claims
        self.by_value: dict[Fraction, list[int]] = {}
        self.small: dict[Fraction, list[int]] = {}  # the same for addends below LEAST_REFERENCE
        self.mended: dict[Fraction, set[Fraction]] = {}  # corrected values of each stated number
        self.said: dict[tuple[Fraction, object], int] = {}
        self.equations: list[Equation] = []
        self.unread = list(derivation.unread)
        self.refused: list[tuple[int, str]] = []
        self.matched: set[Quantity | None] = set()

    # -- one statement ----------------------------------------------------------------------------

    def read(self, place: int) -> None:
        """Judge a statement, and record its claim."""
        self.so_far.place = place
        self.readings.forget()
        statement = self.derivation.statements[place]
        before = self.claims[-1] if self.claims else None
        sides = self.readings.meant(statement, self._sides(statement), before)
        if not sides:
            self.claims.append(None)
            return
        try:
            with self._scope(sides):
                self._judge(place, statement, sides)
        except Undefined:  # 5 / x, if x is 0 after an earlier line is corrected
            self.claims[place:] = [None]
            self.unread.append(Unread(statement.line, statement.text))

    def _judge(self, place: int, statement: Statement, sides: Sides) -> None:
        asides = self.readings.asides(sides)
        pairs = [(left, right, self.readings.agree(left, right, asides=asides)) for left, right in pairwise(sides)]
        for number, (left, right, agree) in reversed(list(enumerate(pairs))):
            if not agree and (why := self._doubt(statement, left, right, asides)):
                self.unread.append(Unread(statement.line, statement.text, why))
                sides, pairs = sides[number + 1 :], pairs[number + 1 :]
                break
        claim = self._claim(sides, asides=asides, right=all(agree for *_, agree in pairs))
        claim.defines = bool(statement.name) and claim.expression is None
        claim.written = alone(claim.side, loose=claim.rounded) or exactly(claim.stated)
        claim.adds = not claim.defines and claim.stated.denominator == 1 and not measures(statement)
        self.claims.append(claim)
        claim.term = self._term(claim, statement)
        self._use_small(claim)
        claim.match = self._match(claim, statement) if pairs else None
        for number, (left, right, agree) in enumerate(pairs):
            one, other = (left.expression, right.expression) if agree else self._apart(left, right, asides)
            self._equation(statement, claim, one, other, agree, last=number == len(pairs) - 1)
        written = _TIMES_LABEL.match(statement.plain)
        times = int(written[1]) if written else layers_of(statement.label)
        if times and not pairs:
            self._implied_product(times, statement, claim)
        elif claim.expression is None and place:
            judged = not pairs and is_total(statement) and _begins_line(statement) and _is_only(statement)
            if judged or claim.stated >= LEAST_REFERENCE:
                self._implied_sum(statement, claim, judged=judged)
        if not pairs and not self._is_judged(statement):
            self._alone(statement, claim)
        if statement.name:
            if statement.name in self.stated:
                before = self.stated[statement.name], self.true[statement.name]
                self.former.setdefault(statement.name, {})[before] = None
            self.stated[statement.name] = exactly(claim.stated)
            self.true[statement.name] = exactly(claim.true)
            self.origin[statement.name] = place
        if place and not pairs and self.derivation.statements[place - 1][:4] == statement[:4]:
            self.so_far.use(place - 1)  # one table row gives one layer's number, then all layers'
        if claim.adds and claim.stated < LEAST_REFERENCE:
            self.small.setdefault(claim.stated, []).append(place)
        if not claim.defines and abs(claim.stated) >= LEAST_REFERENCE:
            self.by_value.setdefault(claim.stated, []).append(place)
            self.mended.setdefault(claim.stated, set()).add(claim.true)
            self.said |= dict.fromkeys(self._words(claim, statement), place)

    def _apart(self, left: Side, right: Side, asides: bool) -> tuple[Expression, Expression]:
        """Return the only pair of parts in which two sums or products differ, else both sides.

        In "a × b + c × d = 38.6M + 81.3M" this may be the second pair.
        """
        one, other = left.expression, right.expression
        if not (isinstance(one, Operation) and isinstance(other, Operation) and one.symbols == other.symbols):
            return one, other
        parts = zip(one.parts, other.parts, strict=True)
        differ = [
            pair for pair in parts if not self.readings.agree(Side(pair[0]), Side(pair[1], right.loose), asides=asides)
        ]
        return differ[0] if len(differ) == 1 else (one, other)

    def _doubt(self, statement: Statement, left: Side, right: Side, asides: bool) -> str:
        """Return why two unequal sides are not judged, or "" if they are."""
        if isinstance(left.expression, Operation) and left.expression.symbols == ("/",) and measures(statement):
            return "it divides bytes or operations, whose units are not followed"
        if "|" in statement.plain and self._is_several(left, right, asides):
            return "its number is so many times its product, as of all layers"
        return self.readings.doubt(left, right, asides=asides)

    def _is_several(self, left: Side, right: Side, asides: bool) -> bool:
        """Return whether a row has the product of one layer and the number of several."""
        one, some = (self.readings.value(side.expression, asides).exact for side in (left, right))
        return one >= LEAST_REFERENCE and 1 < some / one <= MOST_COUNTED and (some / one).denominator == 1

    def refuse(self, place: int, why: str) -> None:
        """Skip a statement that cannot be computed, and record the reason."""
        statement = self.derivation.statements[place]
        self.claims[place:] = [None]
        self.refused.append((statement.line, why))
        self.unread.append(Unread(statement.line, statement.text, why))

    def _sides(self, statement: Statement) -> list[Side]:
        """Return the sides that have a value.

        A variable that is assigned a new plain number is not a side: it is redefined.
        """
        found = []
        for side in statement.sides:
            try:
                evaluate(side.expression, self.stated)
            except Undefined:  # 5 / 0
                self.unread.append(Unread(statement.line, statement.text))
                continue
            found.append(side)
        if len(found) > 1 and self.readings.wrong(found[:2]) and self._counts(statement, *found[:2]):
            found = found[1:]
        first = found[0].expression if len(found) > 1 else None
        if isinstance(first, Name):
            origin = self.origin.get(first.name)
            claim = None if origin is None else self.claims[origin]
            value = found[1].expression
            anew = claim is None or claim.defines or isinstance(value, Operation) or _is_other_size(value, claim.stated)
            config = _SETTING.fullmatch(statement.plain) is not None  # "n_layer = 24" restates the config
            if (origin is not None or (self.readings.wrong(found[:2]) and not config)) and anew:
                return found[1:]
        return found

    def _counts(self, statement: Statement, first: Side, second: Side) -> bool:
        """Return whether a chain begins with a count as its label: "12 blocks = 12 × 7,087,872"."""
        count = first.expression
        if not isinstance(count, Number) or count.value > MOST_COUNTED:
            return False
        word = re.escape(statement.label.rpartition(" ")[2])
        behind_word = word[-1:].isalpha() and re.search(rf"{word} \d", statement.plain) is not None
        far = abs(self.readings.value(second.expression, asides=False).exact) >= LEAST_FAR
        return behind_word or far or _COUNTED.match(statement.clause) is not None

    @contextmanager
    def _scope(self, sides: Sides) -> Iterator[None]:
        """Use, while a chain is judged, the variable values that make it right.

        A variable may have one of its earlier values: "With V = 50304 …" holds for one sentence. A
        later V × d = 50257 × 768 shows which V is meant.
        """
        names = sorted({name for side in sides for name in names_in(side.expression)} & self.former.keys())
        if not names or len(sides) < 2 or not self.readings.wrong(sides):
            yield
            return
        now = {name: (self.stated[name], self.true[name]) for name in names}
        choices = [[now[name], *self.former[name]] for name in names]
        for choice in islice(product(*choices), MOST_SCOPES):
            self._put(dict(zip(names, choice, strict=True)))
            if not self.readings.wrong(sides):
                break
        else:
            self._put(now)
        chosen = {name: (self.stated[name], self.true[name]) for name in names}
        try:
            yield
        finally:
            self._put({name: now[name] for name in names if (self.stated[name], self.true[name]) == chosen[name]})

    def _put(self, values: Mapping[str, tuple[Value, Value]]) -> None:
        for name, (stated, true) in values.items():
            self.stated[name], self.true[name] = stated, true
        self.readings.forget()

    def _claim(self, sides: Sides, *, asides: bool, right: bool) -> Claim:
        exact = [side for side in reversed(sides) if is_whole(side.expression)]
        chosen = next((side for side in exact if not side.loose), _longest(exact) or sides[-1])
        side = chosen.expression
        stated = self.readings.value(side, asides).exact
        computed = next((one.expression for one in sides if isinstance(one.expression, Operation)), None)
        true = evaluate(computed or side, self.true, asides=asides, replaced=self._mended).exact
        carried = self.readings.value(computed or side, asides).exact - true
        if not right and self.quantities and self.quantities.of(stated) and not self.quantities.of(true):
            true = stated  # the model has the result: a number on the other side is mistyped
        return Claim(stated, true, computed, side, asides, rounded=chosen.loose, right=right, carried=carried)

    def _mended(self, number: Number) -> Value | None:
        """Return the corrected value of a number that is an earlier line's wrong result."""
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
        one, other = self.readings.value(left, claim.asides).exact, self.readings.value(right, claim.asides).exact
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
        """Return a sentence about what the label names, if the model has another number of it."""
        if self.quantities is None or claim.defines or claim.expression is None:
            return None
        # A total under a heading counts what the heading names.
        said = statement.heading if is_total(statement) and not tags_of(statement.label) else statement.label
        found = misfit(said, claim.true, self.quantities)
        return found.sentence if found else None

    def _match(self, claim: Claim, statement: Statement) -> Quantity | None:
        """Return the model's quantity with this number: exactly, or within its rounding."""
        size = claim.expression is None and claim.stated < LEAST_REFERENCE
        if self.quantities is None or size or (claim.defines and not is_total(statement)):
            return None
        if counts_no_parameters(statement, claim.stated):
            return None
        labels = statement.labels
        found = self.quantities.best(claim.true, labels, _factors(claim.term), self.matched)
        spread = claim.term.spread if claim.term else Fraction(0)
        if found is None and (spread or claim.is_rounded):
            width = max(spread, (claim.written.high - claim.written.low) / 2)
            near = Value(claim.true, claim.true - width, claim.true + width)
            if is_total(statement):
                found = self.quantities.whole_model(near) or self.quantities.whole_model(claim.written)
            found = found or self.quantities.stated(near, labels)
        self.matched.add(found)
        return found

    # -- terms ------------------------------------------------------------------------------------

    def _term(self, claim: Claim, statement: Statement) -> Term:
        def value(node: Expression) -> Value:
            return evaluate(node, self.true, asides=claim.asides, replaced=self._mended)

        if claim.expression is None:
            before = self._said_before(claim, statement)
            if before is not None:
                self.so_far.use(before)
            found = (self.so_far.at(before).term if before is not None else None) or Term(claim.true)
        else:
            found = term_of(claim.expression, value, self._refers, asides=claim.asides)
        if found.value != claim.true:  # the result is right, but a number in the product is wrong
            found = Term(claim.true)
        return labelled(found, (statement.label or statement.name, *statement.labels[1:]), statement.line)

    def _refers(self, node: Number | Name) -> Term | None:
        """Return the term of the earlier line that produced a number or defined a variable."""
        if isinstance(node, Name):
            place = self.origin.get(node.name)
        else:
            places = self.by_value.get(node.value, []) if not node.rounded else []
            while len(places) > 1 and self.so_far.at(places[0]).used:
                places.pop(0)  # equal numbers on several lines: use each once, then the last
            place = places[0] if places else None
            if place is None and not node.rounded and node.value >= LEAST_REFERENCE:
                above = self.so_far.summed(exactly(node.value))
                for earlier in above:
                    self.so_far.use(earlier)
                return total(self.so_far.terms(above)) if above else None
        if place is None or self.so_far.at(place).defines:
            return None
        self.so_far.use(place)
        return self.so_far.at(place).term

    def _use_small(self, claim: Claim) -> None:
        """Mark small results of earlier lines as used by a sum: "128 + 32,768" of norms."""
        if isinstance(claim.expression, Operation) and claim.expression.symbols[0] in "+-":
            small = {part.value for part in claim.expression.parts if isinstance(part, Number)}
            for value in (one for one in small if one < LEAST_REFERENCE):
                places = self.small.get(value, [])
                while places and self.so_far.at(places[-1]).used:
                    places.pop()
                self.so_far.use(*places[-1:])

    def _said_before(self, claim: Claim, statement: Statement) -> int | None:
        """Return the earlier line with the same number and words, if the number is not computed."""
        found = (self.said[key] for key in self._words(claim, statement) if key in self.said)
        lines = self.derivation.statements
        # Two equal rows under one heading are distinct, such as the norms of a layer.
        apart = (place for place in found if lines[place].heading != statement.heading)
        return next(apart, None)

    def _words(self, claim: Claim, statement: Statement) -> list[tuple[Fraction, object]]:
        """Return the number paired with its label, and with the tags of its label."""
        words: list[object] = [statement.label.lower(), tags_of(statement.label) or None]
        return [(claim.stated, word) for word in words if word is not None]

    def _implied_sum(self, statement: Statement, claim: Claim, *, judged: bool) -> None:
        """Judge a lone number as the sum of the last lines above it, if that fits.

        A total that is `judged` must equal the sum of all lines. If it is only near that sum, it is
        wrong.
        """
        above = self.so_far.summed(claim.written)
        fits = bool(above)
        above = above or self._meant(statement, judged=judged)
        sums = self.so_far.sum(above)
        near = claim.stated / NEAR <= sums.exact <= claim.stated * NEAR
        if "one" in tags_of(statement.label) or self._has_more(above):
            near = abs(claim.stated - sums.exact) <= LITTLE * claim.stated
        known = self.quantities is not None and claim.stated == self.quantities.total
        wrong = (
            near
            and not known
            and self._lists(above)
            and not any(self.so_far.at(one).is_rounded for one in above)
            and not claim.is_rounded
            and not self._leaves_out(above, claim)
            and not self._passes_over(above)
        )
        exact = sums.exact == claim.stated and claim.stated >= LEAST_REFERENCE
        fits = fits or exact
        if judged and not (fits or wrong) and (column := self._column(statement)):
            above, sums = column, self.so_far.sum(column)
            fits, wrong = sums.meets(claim.written), self._is_off(column, claim)
        if len(above) < 2 or not (exact or (judged and fits) or (wrong and not fits)):
            return
        for earlier in above:
            self.so_far.use(earlier)
        claim.term = labelled(total(self.so_far.terms(above)), (statement.label,), statement.line)
        claim.true, claim.right = claim.term.value, fits
        claim.match = self._match(claim, statement)
        # If only the corrected lines add up to it, the error above is not carried.
        goes_on = sums.meets(claim.written)
        found = claim.true if fits and not goes_on else sums.exact
        if fits and goes_on:
            claim.carried = sum((self.so_far.at(one).error for one in above), Fraction(0))
        self._equation(statement, claim, Number(found), claim.side, fits, last=True)

    def _column(self, statement: Statement) -> list[int]:
        """Return the addends above a drawn line, or the rows of the statement's table.

        The list is empty if one of their numbers was not read.
        """
        lines = self.derivation.lines
        table = "|" in statement.plain
        above = [line for line in lines[max(0, statement.line - MOST_APART) : statement.line - 1] if line.strip()]
        if not (table or (len(above) > 1 and DRAWN.fullmatch(above[-1]) and re.search(r"\d", above[-2]))):
            return []
        free = set(self.so_far.free())
        found: list[int] = []
        read: set[int] = set()
        first = statement.line
        for place in range(self.so_far.place - 1, max(-1, self.so_far.place - 1 - MOST_SUMMED), -1):
            one = self.derivation.statements[place]
            apart = first - one.last > MOST_APART or any(map(SECTION.match, lines[one.last : first - 1]))
            if apart or (table and "|" not in one.plain):
                break
            first = one.line
            read.update(range(first, one.last + 1))
            if place in free and "one" not in tags_of(one.label) and not BRANCH.match(one.text):
                found.append(place)
        missed = any(
            TAKEN.search(lines[number - 1]) or (number not in read and HUNDREDS.search(lines[number - 1]))
            for number in range(first, statement.line)
        )
        computed = sum(self.so_far.at(place).expression is not None for place in found)
        rows = {self.derivation.statements[place].line for place in found}
        margins = {_margin(lines[row - 1]) for row in rows}
        even = len(rows) == len(found) and (table or len(margins) == 1)  # no sub-items of an addend, no second column
        return found[::-1] if even and len(found) >= LEAST_ADDENDS and computed > 1 and not missed else []

    def _is_off(self, places: Sequence[int], claim: Claim) -> bool:
        """Return whether a total is near a sum, but further away than rounding explains."""
        sums = self.so_far.sum(places)
        spread = sums.high - sums.low + claim.written.high - claim.written.low
        away = abs(sums.exact - claim.stated)
        return spread < away <= claim.stated / NEAR_SUM and not self._leaves_out(places, claim)

    def _leaves_out(self, places: Sequence[int], claim: Claim) -> bool:
        """Return whether a total is the sum without a run of consecutive lines.

        Examples: the tied head, or the parts of a line.
        """
        sizes = [exactly(0), *(self.so_far.at(place).written for place in places)]
        sums = list(accumulate(sizes, plus))
        current().step(10 * LONGEST_RUN * len(sums))
        runs = (
            (sums[start], after) for start in range(len(sums)) for after in sums[start + 1 : start + 1 + LONGEST_RUN]
        )
        return any(
            abs(sums[-1].exact - (after.exact - before.exact) - claim.stated)
            <= (sums[-1].high - sums[-1].low + claim.written.high - claim.written.low) / 2
            for before, after in runs
        )

    def _lists(self, places: Sequence[int]) -> bool:
        """Return whether the statements from the first of `places` to the current one form a list.

        A list or table has one statement after another, with few lines between them.
        """
        lines = self.derivation.statements[min(places, default=self.so_far.place) : self.so_far.place + 1]
        if any(TAKEN.search(line.plain) for line in lines):
            return False  # a line subtracts something
        return all(after.line - before.last <= MOST_BETWEEN for before, after in pairwise(lines))

    def _passes_over(self, places: Sequence[int]) -> bool:
        """Return whether a table row since the first of `places` was skipped because of its name.

        A row that seems to name bytes or adapters is skipped, yet "Engram memory" may be an addend.
        """
        rows = range(min(places, default=self.so_far.place), self.so_far.place)
        lines = self.derivation.statements
        return any("|" in lines[row].plain and row not in places and measures(lines[row]) for row in rows)

    def _has_more(self, places: Sequence[int]) -> bool:
        """Return whether unused statements precede `places`."""
        return bool(places) and any(place < places[0] for place in self.so_far.free())

    def _implied_product(self, times: int, statement: Statement, claim: Claim) -> None:
        """Judge the number after "× 12 layers" as the line above, times 12."""
        above = next((place for place in self.so_far.free() if self.so_far.at(place).stated), None)
        last = (
            self.so_far.place - 1 if self.so_far.place and self.claims[-2] else None
        )  # e.g. an adapter's line, which is not an addend
        fit = (one for one in (above, last) if one is not None and self._is_times(one, times, claim))
        if (place := next(fit, None)) is None:
            return
        one = self.so_far.at(place)
        whole = is_total(self.derivation.statements[place]) or _TIMES_LABEL.match(statement.plain)
        if one.stated * times != claim.stated and not (whole or claim.is_rounded):
            return  # "12 layers" may include parts that the line above omits
        self.so_far.use(place)
        factor = Number(Fraction(times))
        product = Operation(("*",), (factor, one.side))
        claim.term = labelled(
            times_of(Term(Fraction(times)), one.term or Term(one.true)), (statement.label,), statement.line
        )
        claim.true, claim.right = (
            one.true * times,
            self.readings.agree(Side(product), Side(claim.side, claim.rounded), asides=False),
        )
        claim.match = self._match(claim, statement)
        self._equation(statement, claim, product, claim.side, claim.right, last=True)

    def _is_times(self, place: int, times: int, claim: Claim) -> bool:
        """Return whether a claim is about `times` the number of an earlier line."""
        return abs(self.so_far.at(place).stated * times - claim.stated) <= LITTLE * claim.stated

    def _is_judged(self, statement: Statement) -> bool:
        return bool(self.equations) and self.equations[-1].line == statement.line

    def _alone(self, statement: Statement, claim: Claim) -> None:
        """Record a lone labelled number as right if the model has that number for the label."""
        if self.quantities is None or claim.defines or measures(statement) or counts_no_parameters(statement, claim.stated):
            return
        labels = statement.labels
        claim.match = self.quantities.whole_model(claim.written) if is_total(statement) else None
        claim.match = claim.match or self.quantities.stated(claim.written, labels)
        if claim.match is not None:
            self.matched.add(claim.match)
            self._equation(statement, claim, Number(Fraction(claim.match.parameters)), claim.side, True, last=True)

    def _meant(self, statement: Statement, *, judged: bool) -> list[int]:
        """Return the statements that a lone number must be the sum of.

        A total sums all; a layer's number sums that layer's statements.
        """
        about = tags_of(statement.label)
        if judged and not about:
            free = list(self.so_far.free())[::-1]
            rows = [place for place in free if self._lists([place])] if "|" in statement.plain else free
            return rows if len(rows) > 2 else free  # a table's total sums its own rows
        if "one" not in about or about - KINDS:
            return []
        lines = [(place, self.derivation.statements[place]) for place in list(self.so_far.free())[::-1]]
        return [place for place, line in lines if "one" in tags_of(line.label) | tags_of(line.heading)]


def _longest(sides: Sequence[Side]) -> Side | None:
    """Return the number with the most digits before its trailing zeros, or None."""
    return max(reversed(sides), key=lambda side: len(str(_value(side)).rstrip("0")), default=None)


def _value(side: Side) -> Fraction:
    return side.expression.value if isinstance(side.expression, Number) else Fraction(0)


def _is_other_size(value: Expression, before: Fraction) -> bool:
    """Return whether a number is a size unlike the one before: "d_ff = 11008" of the next model."""
    if not isinstance(value, Number) or value.value >= LEAST_FAR:
        return False
    return abs(value.value - before) * NEAR_SUM > before


def _margin(line: str) -> int:
    """Return the indentation of a line, comment signs included."""
    return len(line) - len(line.lstrip(MARGIN))


def _is_only(statement: Statement) -> bool:
    """Return whether a line states one large number.

    "33,554,432 embedding, 20,971,520 other, 54,525,952 total" states three.
    """
    return len(_LARGE.findall(statement.plain)) < 2


def _begins_line(statement: Statement) -> bool:
    """Return whether the label begins its line, as in a list or table, not mid-sentence."""
    return statement.plain.lstrip("|#*+-• ").startswith(statement.label[:MOST_BEGUN])


def _factors(term: Term | None) -> tuple[int, ...]:
    """Return the factors of a term, or of the product that is nearly all of it.

    The bias of a projection is negligible next to its weight.
    """
    if term is None:
        return ()
    largest = max(term.leaves, key=lambda leaf: abs(leaf.value))
    if abs(term.value - largest.value) > LITTLE * abs(term.value):
        return ()
    return tuple(sorted(factor for factor in largest.factors if factor != 1))
