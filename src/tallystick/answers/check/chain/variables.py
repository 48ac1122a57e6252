"""The values of the variables so far, and the sides of a chain that they give a value."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from itertools import islice, product

from tallystick.answers.check.chain.readings import LEAST_FAR, Readings, Sides
from tallystick.answers.check.chain.sides import names_in
from tallystick.answers.check.claims import Claim
from tallystick.answers.check.labels import tags_of
from tallystick.derivations.arithmetic import Expression, Name, Number, Operation, Undefined, Value, exactly, is_sum
from tallystick.derivations.slips import is_one_slip, is_typed_for
from tallystick.derivations.statements import Side, Statement

MOST_COUNTED = 999  # largest count that is read as a label
MOST_SCOPES = 64  # combinations of earlier variable values tried per chain
MOST_TRIED = 2_000  # the same per text
LEAST_SETTINGS = 4  # of a line that sets its variables again, as in a log
MOST_ROUGH = 100  # units of its last digit in the size that names a model: 7B, 0.5B, 70B
UNLIKE = 10  # a size that differs by more than 1/10 is another size, not the same one misquoted

_SETTING = re.compile(r"[\w.]+\s*=\s*[\d,._]+")
_COMMENT = re.compile(r"\w\s*(?:#|//)\s*[=≈~]?\s?\d")
_COUNTED = re.compile(r"\s*\d{1,3}(?:\s+[^\W\d_]{3}|\s*[^\W\d_a-zA-Z]{2})")


class Variables:
    """Each variable's value, as stated and with earlier errors corrected."""

    def __init__(self, constants: Mapping[str, int], statements: Sequence[Statement] = ()) -> None:
        self.set_again = _set_again(statements)
        self.stated = {name: exactly(value) for name, value in constants.items()}
        self.true = dict(self.stated)
        self.readings = Readings(self.stated)
        # Earlier values of each variable, as stated and corrected.
        self.former: dict[str, dict[tuple[Value, Value], None]] = {}
        self.tries = MOST_TRIED  # that remain
        self.origin: dict[str, int] = {}  # index of the statement that defined each variable

    def define(self, name: str, claim: Claim, place: int) -> None:
        """Give a variable the value of a statement; its former value is kept."""
        if name in self.stated:
            before = self.stated[name], self.true[name]
            self.former.setdefault(name, {})[before] = None
        self.stated[name] = claim.written if claim.is_vague else exactly(claim.stated)  # per_layer = 25.96M
        self.true[name] = right = exactly(claim.true)
        if not claim.right:  # of code, only the comment is wrong
            self.former.setdefault(name, {})[right, right] = None
        self.origin[name] = place

    def sides(self, statement: Statement, found: Sides, claims: Sequence[Claim | None]) -> Sides:
        """Return the sides of a chain without a label or variable that begins it.

        A variable that is assigned a new plain number is redefined, and is not a side.

        Args:
            statement: the statement that holds the chain.
            found: its sides that have a value.
            claims: the claims of the statements before it.
        """
        if len(found) > 1 and self.readings.wrong(found[:2]):
            found = found[1:] if self._counts(statement, *found[:2]) or _is_rough(statement, found) else found
        while len(found) > 1 and isinstance(first := found[0].expression, Name):
            origin = self.origin.get(first.name)
            if statement.name not in ("", first.name) and _COMMENT.search(statement.text):
                break  # "norms = two_norms  # 4,096" has its number in a comment
            claim = None if origin is None else claims[origin]
            value = found[1].expression
            row = "|" in statement.plain
            anew = claim is None or claim.defines or isinstance(value, Operation) or _is_other(value, claim, row=row)
            option = f"--{first.name}" in statement.text  # of a command: "train.py --max_iters=50000"
            anew = anew or option or statement.text.count("=") >= LEAST_SETTINGS
            config = _SETTING.fullmatch(statement.plain) is not None  # "n_layer = 24" restates the config
            if not ((origin is not None or (self.readings.wrong(found[:2]) and not config)) and anew):
                if origin is None and config and first.name in self.set_again:
                    return found[1:]  # an example of other sizes than the model's
                break
            found = found[1:]
        return found

    def _counts(self, statement: Statement, first: Side, second: Side) -> bool:
        """Return whether a chain begins with a count as its label: "12 blocks = 12 × 7.1 = 85M"."""
        count = first.expression
        if not isinstance(count, Number) or count.value > MOST_COUNTED:
            return False
        word = re.escape(statement.label.rpartition(" ")[2])
        behind_word = word[-1:].isalpha() and re.search(rf"{word} \d", statement.plain) is not None
        far = abs(self.readings.value(second.expression, asides=False).exact) >= LEAST_FAR
        product = second.expression
        factor = isinstance(product, Operation) and set(product.symbols) == {"*"} and count in product.parts
        return behind_word or far or factor or _COUNTED.match(statement.clause) is not None

    def has_value(self, side: Side) -> bool:
        """Return whether a side has a value: every name is known, and nothing is divided by 0."""
        if isinstance(side.expression, Number):
            return True
        try:
            self.readings.value(side.expression, asides=False)
        except Undefined:  # 5 / 0
            return False
        return True

    @contextmanager
    def scope(self, sides: Sides) -> Iterator[None]:
        """Use, while a chain is judged, the variable values that make it right.

        A variable may have one of its earlier values: "With V = 50304 …" holds for one sentence. A
        later V × d = 50257 × 768 shows which V is meant.
        """
        names = sorted({name for side in sides for name in names_in(side.expression)} & self.former.keys())
        if not names or len(sides) < 2 or not self.readings.wrong(sides):
            yield
            return
        now = {name: (self.stated[name], self.true[name]) for name in names}
        choices = [[now[name], *islice(self.former[name], MOST_SCOPES)] for name in names]
        for choice in islice(product(*choices), min(MOST_SCOPES, self.tries)):
            self.tries -= 1
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


def _set_again(statements: Sequence[Statement]) -> frozenset[str]:
    """Return the variables that a text sets to numbers more than once, each time to another one."""
    found: dict[str, set[Fraction]] = {}
    for statement in statements:
        if statement.name and isinstance(number := statement.sides[-1].expression, Number):
            found.setdefault(statement.name, set()).add(number.value)
    return frozenset(name for name, values in found.items() if len(values) > 1)


def _is_rough(statement: Statement, sides: Sides) -> bool:
    """Return whether a chain begins with a model's rough size: "0.5B = 294M + 148M = 442M".

    "Blocks: 90M = 28M + 56M = 84M" is of a part.
    """
    size, sum_ = sides[0].expression, sides[1].expression
    rough = isinstance(size, Number) and size.rounded and size.value < MOST_ROUGH * size.unit
    return rough and len(sides) > 2 and is_sum(sum_) and not tags_of(statement.label)


def _is_other(value: Expression, before: Claim, *, row: bool) -> bool:
    """Return whether a number is not meant as the one before: "d_ff = 11008" of the next model.

    A count may be another one too, "total ≈ 9.93 M" of the next model, or have more digits. In the
    row of a table it is another one unless a digit is mistyped.
    """
    if not isinstance(value, Number):
        return row
    if row and not is_typed_for(value, before.stated):
        return True
    away = abs(value.value - before.stated)
    if value.value >= LEAST_FAR:
        spread = before.written.high - before.written.low
        precise = value.unit < spread and 2 * away <= spread
        return precise or (away * UNLIKE > before.stated and not is_typed_for(value, before.stated))
    mistyped = away and is_one_slip(str(value.value), str(before.stated))
    return away * UNLIKE > before.stated or (away > 0 and not mistyped)
