"""Tell why two unequal sides of a statement are not judged: its columns, rates and distances."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction

from tallystick.answers.check.chain.cells import MULTIPLE, NEAR, NEAR_ROW, Cells
from tallystick.answers.check.chain.forms import is_sum_of_decimals
from tallystick.answers.check.chain.mistyped import (
    LEAST_EXACT,
    LEAST_SHORT,
    LEAST_UNSURE,
    by_power,
    has_slip,
    misadds,
    to_zeros,
)
from tallystick.answers.check.chain.readings import LEAST_FAR, LEAST_UNIT, SHIFTS, Readings, is_fraction
from tallystick.answers.check.chain.rounding import LITTLE, MOST_CUT
from tallystick.answers.check.chain.sides import (
    LEAST_REFERENCE,
    PERCENT,
    computes,
    has_names,
    names_in,
    numbers_in,
    paired_parts,
    symbolic,
)
from tallystick.answers.check.chain.unlike import TWO_NUMBERS, WIDTHS, unlike
from tallystick.answers.check.chain.unread_terms import UnreadTerms
from tallystick.answers.check.chain.wording import counted, wording
from tallystick.answers.check.claims import LEAST_COUNT, measures
from tallystick.answers.check.labels import OUTSIDE, tags_of
from tallystick.answers.check.model.quantities import Quantities
from tallystick.derivations.arithmetic import ASIDES, Expression, Name, Number, Operation, alone, exactly, is_sum
from tallystick.derivations.slips import is_one_slip, is_typed_for
from tallystick.derivations.statements import Derivation, Side, Statement
from tallystick.derivations.text.lines import DIGIT

FAR = 12  # sides with a larger ratio are not meant as equal, unless a factor is omitted
FAR_APART = 1000  # the same for products of numbers alone: "12 layers × 768 dims ≈ 117M parameters" describes a model
LEAST_SIZED = 64  # of a width or a vocabulary; a smaller size is a count
ABOUT = Fraction(1, 1000)  # the same of a product of decimals after ≈
NEAR_SHARE = Fraction(1, 10)  # of a share that a fraction of small numbers rounds
ABOUT_RIGHT = "is about right, as its sign says"
OMITS = "is right in the unit that its sum omits"  # "8 × 44M + 30 + 20.4 = 30 + 20.4 + 2.6 ≈ 53B"
OTHERWISE = "is right with numbers that are not rounded, or with others on its line"
TOO_FAR = "has sides too far apart to be meant as equal"
LONGEST_CLAUSE = 1_000  # characters; a longer one is prose
LEAST_RATE = 2  # digits of a quotient that is another but for one

# Which numbers of a quotient have a letter, and whether its result has none: its units cancel out.
_CANCEL = ((True, True, True), (False, False, True), (True, False, False))
_LETTERS = frozenset("KMGTB")  # units of counts and bytes
_RELATION = re.compile(r"[=≈]")
_MATHEMATICS = re.compile(r"\${1,2}[^\s$](?:[^$]*[^\s$])?\${1,2}(?!\d)|^\s*\${1,2}|\${1,2}\s*$")  # "$2 \times 3$"
_MONEY = re.compile(r"[$€£¥₩₽]\s?\d|\d\s?[€£₽₩元円]|\bUSD\b")
# "4 neurons, each with 3 weights", but not "in each layer"
_EACH = re.compile(r"(?<!\bin )(?<!\bof )\b(?:each|je|chacun\w*|cada)\b|\u5404\u81ea", re.IGNORECASE)
_ENDS_IN_EACH = re.compile(r"(?:\b(?:each|every|je|chacun\w*|cada)|[各每])\W*$", re.IGNORECASE)
_PER_SECOND = re.compile(r"[^\W\d]/s(?:ec)?\b")
_RATE = re.compile(r"[→@|]|\b(?:per|each)\b[^=≈:]*[=≈]")  # "59 MB per layer = 4.1 GB", a column's end
_SLASH = re.compile(r"(?<!\b[^\W\d_])/\s?(?P<one>[^\W\d_]+)")  # "59 MB/layer"


class Doubts:
    """Reasons not to judge two sides, given how their statement is written."""

    def __init__(
        self,
        readings: Readings,
        quantities: Quantities | None,
        constants: Mapping[str, int],
        derivation: Derivation,
    ) -> None:
        self.readings = readings
        self.cells = Cells(readings, derivation)
        self.unread = UnreadTerms(readings, derivation)
        self.quantities = quantities
        self.constants = constants  # names of the model's sizes
        self.sizes = frozenset(constants.values())

    def why(self, statement: Statement, left: Side, right: Side, asides: bool) -> str:
        """Return why two unequal sides are not judged, or "" if they are."""
        why = wording(statement, left) or self._of_rates(statement, left, right, asides)
        if why and not self.readings.are_near(left, right, asides=asides):
            return why  # a unit would set them further apart than a slip
        if self._adds_each(statement, left, right, asides) or self._is_counted(statement, left, right, asides):
            return MULTIPLE
        if why := self.cells.why(statement, left, right, asides):
            outside = why == MULTIPLE and _is_outside(statement)
            return "" if outside and not self.unread.explain(statement, left, right, asides=asides) else why
        if self._rounds_model(left, right, asides) or self.unread.explain(statement, left, right, asides=asides):
            return OTHERWISE
        each = _ENDS_IN_EACH.search(statement.label) is not None
        why = self._unlike(left, right, asides=asides, each=each)
        if why == TWO_NUMBERS and self._has_one(left, right, asides):
            return ""
        return why or self._of_variables(statement, left, right, asides) or self._far(statement, left, right, asides)

    def _of_rates(self, statement: Statement, left: Side, right: Side, asides: bool) -> str:
        """Return why a quotient is not judged: it is a rate of bytes, operations or money.

        A digit wrong is found if its units cancel out: "140 GB / 8 = 67.5 GB".
        """
        quotient, number = left.expression, right.expression
        if not (isinstance(quotient, Operation) and quotient.symbols == ("/",)):
            return ""
        if not measures(statement):
            return "divides prices: their units are not followed" if _is_priced(statement) else ""
        one, _ = self.readings.exact(left, right, asides)
        times = right.unit == "seconds" and not _PER_SECOND.search(statement.clause)  # a rate: "3.9 tok/s"
        if (
            isinstance(number, Number)
            and not times
            and is_typed_for(to_zeros(number, loose=right.loose), one, least=LEAST_RATE)
        ):
            parts = (isinstance(part, Number) and part.rounded for part in quotient.parts)
            share = not number.rounded or number.unit <= PERCENT
            if (*parts, share) in _CANCEL:
                return ""
        return "divides bytes or operations: their units are not followed"

    def _has_wrong_unit(self, left: Expression, right: Side, asides: bool) -> bool:
        """Return whether a product has a number's digits, but not its letter: "= 34M" for 34B."""
        number = right.expression
        if not (
            isinstance(left, Operation) and isinstance(number, Number) and number.rounded and right.unit != "bytes"
        ):
            return False
        value, stated = self.readings.value(left, asides), alone(number, loose=right.loose)
        shifts = (*SHIFTS, *(1 / shift for shift in SHIFTS))
        moved = (stated.times(exactly(shift)) for shift in shifts) if stated else ()
        return number.unit >= LEAST_UNIT and any(value.meets(one) for one in moved)

    def _sets(self, left: Expression, number: Fraction) -> bool:
        """Return whether a number is set right here, behind a line's number: "5 d_model = 768".

        Another one may be set behind a count: "24 layers + d_ff = 1792".
        """
        if not (isinstance(left, Operation) and left.symbols in (("*",), ("+",))):
            return False
        before, name = left.parts
        if not (isinstance(before, Number) and isinstance(name, Name)):
            return False
        if left.symbols == ("+",):
            return before.value < number < LEAST_COUNT
        return self.readings.stated[name.name].exact == number

    def _rounds(self, left: Side, right: Side, asides: bool) -> str:
        """Return why a number may be right after all: the decimals before it are rounded."""
        sides = (left.expression, right.expression)
        if isinstance(sides[0], Number) and isinstance(sides[1], Operation):
            left, right = right, left  # "d_ff = 2048 = 2.67 × d_model"
            sides = sides[::-1]
        if isinstance(sides[0], Number) or not (
            is_fraction(sides[1]) or any(one.is_decimal for side in sides for one in numbers_in(side))
        ):
            return ""
        one, other = self.readings.exact(left, right, asides)
        if is_fraction(sides[1]) and abs(one - other) <= NEAR_SHARE * one:
            return "rounds to a fraction of small numbers"  # "4 × 4096² / (…) = 1/4"
        if right.loose and abs(one - other) <= ABOUT * abs(one):
            return ABOUT_RIGHT  # "2^16 × 1.999 ≈ 131072"
        computed = self.readings.value(left.expression, asides, loose=True)
        number = alone(right.expression, loose=right.loose) or self.readings.value(right.expression, asides, loose=True)
        if computed.meets(number):
            return "is right if its decimals are rounded"  # "tanh(1) = 0.76, 30 × 0.76 = 22.9"
        return ""

    def _unlike(self, left: Side, right: Side, *, asides: bool, each: bool) -> str:
        """Return why two unequal sides are not judged, or "" if they are.

        Args:
            left: one side.
            right: its neighbour.
            asides: whether parentheses after a number only comment on it.
            each: whether the product may be taken several times, as the word before it says.
        """
        if not (left.sure and right.sure):
            values = [self.readings.value(side.expression, asides) for side in (right, left)]
            # One wrong digit in six or more is a slip of typing, whatever the words say.
            least = LEAST_SHORT if right.unit == "parameters" else LEAST_UNSURE  # "[64 x 4] = 257 parameters"
            number = computes(left.expression, asides=asides) != computes(right.expression, asides=asides)
            if (number and has_slip(*values, least=least)) or misadds(left.expression, *values):
                return ""
            if each and right.sure and not has_names(left.expression) and self._is_typed(left, right):
                return ""  # "each 32000 × 4096 = 151M" is neither 131M nor twice that
            return "has words or a function among its numbers"
        return self._distant(left, right, asides) or self._rounds(left, right, asides)

    def _distant(self, left: Side, right: Side, asides: bool) -> str:
        """Return why two unequal sides are not meant as equal, or "" if they are."""
        one, other = self.readings.exact(left, right, asides)
        if right.loose and symbolic(right.expression):
            parts = left.expression.parts if isinstance(left.expression, Operation) else ()
            if abs(one - other) <= LITTLE * abs(one) or right.expression in parts or symbolic(left.expression):
                return ABOUT_RIGHT  # "4 × n² + n ≈ 4 × n²"
        sizes = right.loose and _computes(left.expression) and _computes(right.expression)
        if sizes and max(one, other) < LEAST_COUNT and abs(one - other) <= MOST_CUT * abs(one):
            return ABOUT_RIGHT  # "d_ff = 256 × 5.5 ≈ 8/3 × 512"
        if isinstance(right.expression, Number) and self._sets(left.expression, other):
            return "sets a size, behind a number"
        low, high = sorted((abs(one), abs(other)))
        computed = isinstance(left.expression, Operation) and low >= LEAST_REFERENCE
        ratio = high / low if low else 0
        numbers = not has_names(left.expression)
        why = unlike(left, right, (one, other))
        number = right.expression
        typed = isinstance(number, Number) and number.unit == 1 and is_typed_for(number, one)  # "2 × d = 649"
        if not (numbers or typed) and high < LEAST_REFERENCE and isinstance(left.expression, Operation):
            why = why or "relates sizes, and counts nothing"
        known = numbers or self._is_known(left, one)
        if why or (known and self._has_wrong_unit(left.expression, right, asides)):
            return why or (OMITS if is_sum_of_decimals(left.expression) else "")
        if not numbers or (high >= LEAST_FAR and not (computed and ratio <= FAR_APART)):
            factors = {number.value for side in (left, right) for number in numbers_in(side.expression)} | set(SHIFTS)
            left_out = any(abs(ratio - factor) <= LITTLE * ratio for factor in factors)
            if not 0 < ratio <= FAR and not left_out:
                return TOO_FAR
        return ""  # "92 × 4 × 4 = 32" holds only numbers

    def _of_variables(self, statement: Statement, left: Side, right: Side, asides: bool) -> str:
        """Return why sides with variables may both be right: these may have other values here."""
        names = {name for side in (left, right) for name in names_in(side.expression)}
        if not names:
            return ""
        unknown = not names.issubset(names_in(left.expression))
        if unknown and _computes(left.expression) and _computes(right.expression):
            return "is an equation to be solved"  # "0.5 × 105.9 = 0.5 × λ × 57.5"
        if any(side.unit == "seconds" for side in statement.sides):
            return "gives a time: its unit is not followed"
        if not (_LETTERS.isdisjoint(names) or self._is_typed(left, right)):
            return "has a letter that may be a unit or a variable"  # "16 × 13B" where B is the batch
        small = isinstance(left.expression, Number) and self.readings.value(left.expression, asides)
        fewer = names > set(names_in(right.expression)) and symbolic(left.expression) and symbolic(right.expression)
        if fewer or (small and small.exact < LEAST_REFERENCE):
            return "relates variables, and states no number"  # "2 × d × d_ff = 8 × d²", "1.05 = 2.67 - 1.33p"
        given = _substitutes(left.expression, right.expression)
        # "n × s = 64 × 4069" where s is 4096 is a slip.
        slip = any(is_one_slip(str(self.readings.stated[name].exact), str(number)) for name, number in given.items())
        return "gives its variables other values than before" if given and not slip else ""

    def _is_typed(self, left: Side, right: Side) -> bool:
        """Return whether a number is a side but for one digit."""
        number = right.expression
        return isinstance(number, Number) and is_typed_for(number, self.readings.value(left.expression, False).exact)

    def _far(self, statement: Statement, left: Side, right: Side, asides: bool) -> str:
        """Return why sides far apart are not judged: no slip explains them, and more is written.

        A slip changes a digit, a zero or a letter, or leaves the sides near to each other. Only a
        product of numbers with its result, and nothing else, is judged however far they are.
        """
        one, other = self.readings.exact(left, right, asides)
        low, high = sorted((abs(one), abs(other)))
        if high < NEAR * low:
            return ""
        row = statement.clause.lstrip().startswith("|")
        if isinstance(left.expression, Name):
            return "" if left.expression.name in self.constants else TOO_FAR  # "n_layer = 24" of a model with 12
        given, number = left.expression, right.expression
        if isinstance(number, Operation) and number.symbols[0] in ASIDES:
            number = number.parts[0]  # "124.4M (1億2400万)"
        typed = isinstance(number, Number) and is_typed_for(number, one, least=1)
        if isinstance(given, Number) and not given.rounded:  # "904,626,880 = 47,308,800 + 16 × 9,832,320 + 960"
            typed = typed or is_typed_for(given, other, least=LEAST_EXACT)
        if typed or by_power(low, high):
            return ""
        names = {name for side in (left, right) for name in names_in(side.expression)}
        named = bool(names) and not self._is_known(left, one)  # "2 × d × d_ff + d × d_ff = 90M"
        lone = not isinstance(left.expression, Operation) or left.expression.symbols[0] in ASIDES
        if (
            named
            or lone
            or (row and high > NEAR_ROW * low)
            or (not row and (_RATE.search(statement.clause) or _is_rated(statement.clause[:LONGEST_CLAUSE])))
            or _is_priced(statement)
        ):
            return TOO_FAR
        return ""

    def _is_known(self, left: Side, value: Fraction) -> bool:
        """Return whether the model has what its own sizes, or letters for them, are computed to."""
        names = set(names_in(left.expression))
        own = not names.isdisjoint(self.constants) or all(map(self._is_size, names))
        return self.quantities is not None and bool(self.constants) and own and bool(self.quantities.of(value))

    def _is_size(self, name: str) -> bool:
        """Return whether a text gives a variable one of the model's sizes: "C = 384"."""
        return self.readings.stated[name].exact in self.sizes

    def _rounds_model(self, left: Side, right: Side, asides: bool) -> bool:
        """Return whether a sum of rounded numbers is near the model's total, which is its result.

        Example: "131M + 32 × 1.44B + 131M = 46.7B".
        """
        number = right.expression
        if self.quantities is None or not (isinstance(number, Number) and number.rounded):
            return False
        rounded = any(one.rounded for one in numbers_in(left.expression))
        stated = alone(number, loose=right.loose)
        near = self.readings.are_near(left, right, asides=asides)
        return rounded and near and stated is not None and stated.meets(exactly(self.quantities.total))

    def _has_one(self, left: Side, right: Side, asides: bool) -> bool:
        """Return whether the model has a quantity with the number of a side, "6 = 4" of a norm.

        "497,759,232 = 124,439,808 floats" says how many bytes they have, and "vocab 50257 =
        38,597,376" what a table of this size has.
        """
        low, high = sorted(self.readings.exact(left, right, asides))
        bytes_of = any(high == width * low for width in WIDTHS) or high > FAR_APART * low
        if self.quantities is None or bytes_of:
            return False
        if low in self.sizes and low >= LEAST_SIZED and high % low == 0 and self.quantities.of(high):
            return False
        return any(map(self.quantities.of, (low, high)))

    def _is_counted(self, statement: Statement, left: Side, right: Side, asides: bool) -> bool:
        """Return whether words next to a product multiply it: "four matrices of 768 × 768 = …"."""
        if statement.name:
            return False  # "y = 3 × 1000 = 5"
        number = alone(right.expression, loose=right.loose)
        before = f"{statement.label} {DIGIT.split(statement.clause.strip(), maxsplit=1)[0]}"
        found = counted(before, digits=True) | counted(statement.plain[:LONGEST_CLAUSE], digits=False)
        value = self.readings.value(left.expression, asides) if found else None
        return any(number and value and value.times(exactly(times)).meets(number) for times in found)

    def _adds_each(self, statement: Statement, left: Side, right: Side, asides: bool) -> bool:
        """Return whether a sum is less than its result, and an addend is said of each of several.

        Example: "4 neurons, each with 3 weights + 1 bias = 16".
        """
        if not is_sum(left.expression) or not _EACH.search(statement.plain):
            return False
        sums, number = (self.readings.value(side.expression, asides) for side in (left, right))
        return number.exact > (1 + LITTLE) * sums.exact and not misadds(left.expression, number, sums)


def _substitutes(left: Expression, right: Expression) -> dict[str, Fraction]:
    """Return the numbers that a side has for the variables of the other: "2·n·s = 2·n·4096".

    The result is empty if they differ in anything else.
    """
    pairs = [pair for pair in paired_parts(left, right) if pair[0] != pair[1]]
    given = {one.name: other.value for one, other in pairs if isinstance(one, Name) and isinstance(other, Number)}
    return given if len(given) == len(pairs) else {}


def _computes(side: Expression) -> bool:
    return isinstance(side, Operation) and side.symbols[0] not in ASIDES


def _is_priced(statement: Statement) -> bool:
    """Return whether a statement is about money; $ may also enclose mathematics."""
    return _MONEY.search(_MATHEMATICS.sub(" ", statement.text)) is not None


def _is_outside(statement: Statement) -> bool:
    """Return whether a row is of a part that no layer has, such as the pooler."""
    about = tags_of(statement.label)
    return bool(about & OUTSIDE) and not about & {"one", "all", "block"}


def _is_rated(clause: str) -> bool:
    """Return whether a slash may leave out a factor: "59 MB/layer = 4.1 GB".

    "96 layers × 37M/layer" has that factor; "2 × 8 × 128 = 2,048 bytes/token" has no other tokens.
    """
    left, *_ = _RELATION.split(clause, maxsplit=1)
    for slash in _SLASH.finditer(clause):
        counted = re.search(rf"\b{slash['one']}s?\b(?!\s*[=≈])", left[: slash.start()], re.IGNORECASE) is not None
        if counted == (slash.start() > len(left)):
            return True
    return False
