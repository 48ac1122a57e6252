"""Find the addends of a total by the layout above it: a drawn line, a table or a list."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fractions import Fraction

from tallystick.answers.check.chain.mistyped import ends_alike
from tallystick.answers.check.claims import Claim, is_total
from tallystick.answers.check.earlier.addends import MOST_SUMMED, Addends
from tallystick.answers.check.earlier.multiples import takes_layers
from tallystick.answers.check.labels import tags_of
from tallystick.derivations.arithmetic import Number
from tallystick.derivations.statements import (
    BRANCH,
    DRAWN,
    HUNDREDS,
    MARGIN,
    SECTION,
    SUBTOTAL,
    TAKEN,
    Derivation,
    Statement,
    margin_of,
)

MOST_APART = 6  # lines from one addend to the next above a drawn line
MOST_BETWEEN = 2  # lines from one item of a list to the next
LEAST_ADDENDS = 3
LONGEST_ITEM = 40  # lines
LONGEST_BLOCK = 20  # addends right above a subtotal
MOST_UNSHARED = Fraction(1, 2)  # percent that the rounding of shares may leave
# "Total with all norms" counts more than the list does.
_MORE = re.compile(
    r"\b(?:incl\w*|with|plus|etc|others?|misc\w*|rest|active|trainable)\b|[+…]|\u7b49|\.\.\.", re.IGNORECASE
)
_MARKED = re.compile(r"[\s#/;│]*(?:[-*+•]|\d{1,2}[.)])\s")  # an item of a list
TAKEN_TIMES = re.compile(
    r"\((?:[^()=]*[^\s\d]\s)?[*×x]\s?\d{1,3}\)"
)  # "| 589,824 | Key projection (×12) |" is of one layer
_SHARE = re.compile(r"(\d{1,3}(?:[.,]\d{1,3})?)\s?%")


class Columns:
    """Finds the addends of a total by the layout of the text."""

    def __init__(self, derivation: Derivation, so_far: Addends) -> None:
        self.derivation = derivation
        self.so_far = so_far
        self.proven: dict[int, frozenset[int]] = {}  # line of a row of totals -> lines that one of them adds

    def prove(self, statement: Statement, places: Sequence[int]) -> None:
        """Record the rows that the total of a column adds: the next column has the same."""
        if statement.column:
            self.proven[statement.line] = frozenset(self.derivation.statements[place].line for place in places)

    def by_next_column(self, statement: Statement) -> list[int]:
        """Return the addends of a total by those of another column in the same row, or []."""
        lines, table = self.derivation.statements, self._table()
        rows = self.proven.get(statement.line) or self._rows_ahead(statement, table)
        if rows is None:
            return []
        if any(lines[place].line not in rows or not lines[place].column for place in table):
            return []  # a row has a number in one of the columns only
        found = [place for place in table if lines[place].column == statement.column and self.so_far.claims[place]]
        return found if len(found) == len(rows) else []

    def _rows_ahead(self, statement: Statement, table: Sequence[int]) -> frozenset[int] | None:
        """Return the rows of a table that add up to the total in a column to the right, or None."""
        lines, place = self.derivation.statements, self.so_far.place
        for total in lines[place + 1 : place + 1 + statement.column]:
            stated = total.sides[0].expression
            if total.line != statement.line or not isinstance(stated, Number):
                return None
            rows = [row for row in table if lines[row].column == total.column and self.so_far.claims[row]]
            if len(rows) >= LEAST_ADDENDS and sum(self.so_far.at(row).stated for row in rows) == stated.value:
                return frozenset(lines[row].line for row in rows)
        return None

    def _table(self) -> list[int]:
        """Return the statements of the table above the current one, but those of its own row."""
        lines, place = self.derivation.statements, self.so_far.place
        above = lines[place].line
        found = list[int]()
        for row in range(place - 1, max(-1, place - 1 - MOST_SUMMED), -1):
            if above - lines[row].last > 1 or "|" not in lines[row].plain:
                break
            above = lines[row].line
            found += [row] if above < lines[place].line else []
        return found[::-1]

    def of(self, statement: Statement, claim: Claim) -> list[int]:
        """Return the addends above a drawn line, or the rows of the statement's table.

        The list is empty if one of their numbers was not read.
        """
        lines = self.derivation.lines
        table = "|" in statement.plain
        above = [line for line in lines[max(0, statement.line - MOST_APART) : statement.line - 1] if line.strip()]
        if not (table or (len(above) > 1 and DRAWN.fullmatch(above[-1]) and re.search(r"\d", above[-2]))):
            return []
        free = frozenset(self.so_far.free())
        found: list[int] = []
        read: set[int] = set()
        first, margin = statement.line, 0
        for place in range(self.so_far.place - 1, max(-1, self.so_far.place - 1 - MOST_SUMMED), -1):
            one = self.derivation.statements[place]
            between = lines[one.last : first - 1]
            apart = first - one.last > MOST_APART or any(map(SECTION.match, between))
            # A line that is indented less heads the column: "FFN (I = 3072):"
            heads = [one.line, *range(one.last + 1, first)] if read else []
            apart = apart or any(lines[row - 1].strip() and margin_of(lines[row - 1]) < margin for row in heads)
            margin = margin_of(lines[one.line - 1]) if not read else margin
            apart = apart or (table and any(line.strip() and "|" not in line for line in between))
            if apart or (table and "|" not in one.plain):
                break
            first = one.line
            read.update(range(first, one.last + 1))
            if place in free and "one" not in tags_of(one.label) and not BRANCH.match(one.text):
                found.append(place)
        missed = any(
            self._is_taken(number) or (number not in read and HUNDREDS.search(lines[number - 1]))
            for number in range(first, statement.line)
        )
        computed = sum(self.so_far.at(place).expression is not None for place in found)
        rows = {self.derivation.statements[place].line for place in found}
        margins = {margin_of(lines[row - 1]) for row in rows}
        even = len(rows) == len(found) and (table or len(margins) == 1)  # no sub-items of an addend, no second column
        sure = computed > 1 or _are_all(lines[row - 1] for row in rows)
        sure = sure or ends_alike(claim.stated, self.so_far.sum(found).exact)
        return found[::-1] if even and len(found) >= LEAST_ADDENDS and sure and not missed else []

    def items(self, statement: Statement, *, least_computed: int = 2) -> list[int]:
        """Return the items of the list above a total, or [] if these may not be all.

        The numbers of one layer are no items, and no item stands under another one.

        Args:
            statement: the statement of the total.
            least_computed: how many of the items must have a formula.
        """
        if _MORE.search(statement.plain):
            return []
        lines, free = self.derivation.lines, frozenset(self.so_far.free())
        found, read, first = list[int](), set[int](), statement.line
        margin, marked = margin_of(lines[first - 1]), _MARKED.match(lines[first - 1]) is not None
        for place in range(self.so_far.place - 1, max(-1, self.so_far.place - 1 - MOST_SUMMED), -1):
            one = self.derivation.statements[place]
            between = lines[one.last : first - 1]
            within = margin_of(lines[one.line - 1]) - margin
            if len(between) > MOST_BETWEEN or any(map(SECTION.match, between)) or within < 0:
                break
            if not within and (is_total(one) or (marked and not _MARKED.match(lines[one.line - 1]))):
                break
            first = one.line
            read.update(range(first, one.last + 1))
            words = (one.label, *(() if SUBTOTAL.search(one.label) else one.items))
            one_layer = any("one" in tags_of(word) for word in words) and not takes_layers(one)
            if place in free and not one_layer:
                found.insert(0, place)
        unread = (
            line for number, line in enumerate(lines[first - 1 : statement.line - 1], first) if number not in read
        )
        computed = sum(self.so_far.at(place).expression is not None for place in found)
        sure = len(found) >= LEAST_ADDENDS and computed >= least_computed and not any(map(HUNDREDS.search, unread))
        taken = any(map(self._is_taken, range(first, statement.line + 1)))
        return found if sure and not taken and not self._are_nested(found) else []

    def _is_taken(self, number: int) -> bool:
        """Return whether a line is taken away, or several times that its number does not have."""
        line = self.derivation.lines[number - 1]
        if TAKEN.search(line):
            return True
        if "(" not in line or not TAKEN_TIMES.search(line):
            return False
        near = range(max(0, self.so_far.place - MOST_SUMMED), self.so_far.place)
        own = [place for place in near if self.derivation.statements[place].line == number]
        used = any(self.so_far.claims[place] and self.so_far.at(place).users for place in own)  # of one layer
        return not (used or any(takes_layers(self.derivation.statements[place]) for place in own))

    def block(self, statement: Statement, *, spaced: bool = False) -> list[int]:
        """Return the statements on the lines right above a total, one on each, under its heading.

        All are indented alike. With `spaced`, a blank line may stand above the total.
        """
        lines, found, free = self.derivation.statements, list[int](), frozenset(self.so_far.free())
        line, margin = statement.line, -1
        above = self.derivation.lines[max(0, line - 3) : line - 1]
        if spaced and len(above) == 2 and not above[1].strip() and "|" not in above[0]:
            line -= 1
        for place in range(self.so_far.place - 1, -1, -1):
            one, claim = lines[place], self.so_far.claims[place]
            if claim is not None and claim.defines:
                continue  # a size that the product shows
            if claim is not None and claim.users and one.last == line - 1:
                line = one.line
                continue  # another line of the block goes on from it
            if one.heading != statement.heading or one.last != line - 1 or place not in free:
                break
            before, margin = margin, margin_of(self.derivation.lines[one.line - 1])
            if before not in (-1, margin) or len(found) == LONGEST_BLOCK:
                break
            line = one.line
            found.insert(0, place)
        return found

    def products(self, statement: Statement, *, exact: bool) -> list[int]:
        """Return the products right above a total, two or more, or [].

        Args:
            statement: the statement of the total.
            exact: leave out those from the last rounded number on; else all must be products.
        """
        last = self.so_far.claims[self.so_far.place - 1] if self.so_far.place else None
        if last is None or (last.expression is None and not last.defines):
            return []  # much faster
        found = list[int]()
        for place in reversed(self.block(statement)):
            claim = self.so_far.at(place)
            if claim.expression is None and not exact:
                return []
            if claim.expression is None or (exact and claim.is_rounded):
                break
            found.insert(0, place)
        return found if len(found) > 1 else []

    def is_closed(self, statement: Statement, block: Sequence[int]) -> bool:
        """Return whether a block is all that its total can add: nothing above it belongs to it."""
        if _MORE.search(statement.plain):
            return False
        lines = self.derivation.lines
        first = self._begin(block[0])
        above = lines[first - 2].rstrip(" *_") if first > 1 else ""
        in_comments = SECTION.match(lines[first - 1]) is not None  # "# up: 4096 × 11008 = 45.1M"
        headed = SECTION.match(above) is not None and not in_comments
        begins = headed or not above.strip(MARGIN) or above.endswith((":", "\uff1a"))
        return begins or DRAWN.fullmatch(above) is not None or margin_of(above) < margin_of(lines[first - 1])

    def _begin(self, place: int) -> int:
        """Return the line at which a block begins, with the lines above it that it goes on from."""
        first = self.derivation.statements[place].line
        for above in range(place - 1, -1, -1):
            line, claim = self.derivation.statements[above], self.so_far.claims[above]
            if line.last != first - 1 or claim is None or not claim.users:
                break
            first = line.line
        return first

    def _are_nested(self, places: Sequence[int]) -> bool:
        """Return whether one of some statements stands under another statement, or next to one."""
        lines = [self.derivation.statements[place].line for place in places]
        stated = {one.line for one in self.derivation.statements[places[0] : places[-1]]} if places else set()
        return len(set(lines)) < len(lines) or any(_parent(self.derivation.lines, line) in stated for line in lines)


def item_around(lines: Sequence[str], number: int) -> int:
    """Return the line of the item or of the key, "layer:", that a line stands under, or 0."""
    begins = _parent(lines, number)
    heads = begins and (_MARKED.match(lines[begins - 1]) or lines[begins - 1].rstrip(" │|\t").endswith(":"))
    return begins if heads else 0


def _parent(lines: Sequence[str], number: int) -> int:
    """Return the nearest line above that is indented less, or 0."""
    margin = margin_of(lines[number - 1])
    above = range(number - 1, max(0, number - 1 - LONGEST_ITEM), -1) if margin else ()
    return next((one for one in above if lines[one - 1].strip() and margin_of(lines[one - 1]) < margin), 0)


def _are_all(rows: Iterable[str]) -> bool:
    """Return whether the shares in some rows add up to 100%, so that none is missing."""
    shares = [_SHARE.search(row) for row in rows]
    whole = sum((Fraction(share[1].replace(",", ".")) for share in shares if share), Fraction(0))
    return None not in shares and abs(whole - 100) <= MOST_UNSHARED
