"""Fit an exact expression to a number that was seen at some argument values.

Sums of products come first, with as few terms as fit: ``3*n_embd``, ``n_embd*n_kv/n_head``, ``depth
- 1``. Then a product rounded down or up (``n_embd//n_head``, ``256*⌈d/96⌉``), the maximum or
minimum of two forms, and sums that contain one of these. All arithmetic uses integers and
fractions: a form fits at every point or not at all.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from itertools import chain, combinations, combinations_with_replacement, islice, permutations
from typing import Any

from tallystick.core.algebra.expressions import Expression, evaluate, keys

Point = Mapping[Any, int]  # the value of each argument, and of roundings treated as arguments
Number = int | Fraction

FEWEST_FOR_ROUNDING = 5  # distinct points; some rounding fits any three or four numbers
MOST_TERMS = 3
TENTHS = (11, 12, 13, 14, 15)  # ten times the ffn_dim_multiplier of published models
MOST_SUMS = 60_000  # sums tried for one number; five arguments give more, but the later sums are unlikely


def fit(points: Sequence[Point], values: Sequence[int], known: Iterable[Expression] = ()) -> Expression | None:
    """Return the simplest expression that gives `values` at `points`, or None.

    A form is accepted only if there are more points than free constants, so that some points check
    it.

    Args:
        points: the argument values of each model.
        values: the number to explain, one for each point.
        known: roundings found elsewhere in the model, which sums may contain.
    """
    if len(set(values)) == 1:
        return values[0]
    names = _moving(points, values)
    # With three or more arguments, sums of three terms come last: trying them takes seconds.
    few = len(names) < 3
    return (
        _sum(points, values, names, most=MOST_TERMS if few else 2)
        or _rounded(points, values, names)
        or _bounded(points, values, names)
        or _sum_with_rounding(points, values, names, known)
        or _rounded_twice(points, values, names)
        or (None if few else _sum(points, values, names, most=MOST_TERMS))
    )


def holds(expression: Expression, point: Point, value: int) -> bool:
    """Return whether an expression gives `value` at a point."""
    try:
        return evaluate(expression, point) == value
    except ZeroDivisionError:
        return False


def _moving(points: Sequence[Point], values: Sequence[int]) -> list[str]:
    """Return the arguments the value can depend on.

    These are all arguments except those whose isolated changes never changed the value.
    """
    moving = []
    for name in points[0]:
        lines: dict[tuple[int, ...], set[tuple[int, int]]] = {}
        for point, value in zip(points, values, strict=True):
            others = tuple(number for other, number in point.items() if other != name)
            lines.setdefault(others, set()).add((point[name], value))
        changed = [line for line in lines.values() if len(line) > 1]
        if not changed or any(len({value for _, value in line}) > 1 for line in changed):
            moving.append(name)
    return moving


# -- products -------------------------------------------------------------------------------------


class _Product:
    """A product of arguments (`above`), optionally divided by one other (`below`)."""

    def __init__(self, above: tuple[Expression, ...], below: Expression | None = None) -> None:
        self.above, self.below = above, below

    def at(self, point: Point) -> Number:
        value = math.prod(point[name] for name in self.above)
        return Fraction(value, point[self.below]) if self.below else value

    @property
    def names(self) -> set[Expression]:
        return {*self.above, *([self.below] if self.below else [])}


def _products(names: Sequence[Expression], points: Sequence[Point]) -> list[_Product]:
    """Return candidate products, simple ones first; the empty product is 1."""
    above = [product for degree in range(4) for product in combinations_with_replacement(names, degree)]
    below = [name for name in names if all(point[name] for point in points)]
    over = [(product, name) for product in above for name in below if name not in product and len(product) < 3]
    return [_Product(product) for product in above] + [_Product(product, name) for product, name in over]


def _sum(
    points: Sequence[Point],
    values: Sequence[int],
    names: Sequence[Expression],
    most: int,
    having: Expression | None = None,
) -> Expression | None:
    """Return the sum of the fewest products with constant factors.

    If `having` is given, one of the products must contain it.
    """
    products = _products(names, points)
    # Every row is multiplied by all possible denominators, so that the search uses only integers.
    scales = [math.prod(point[name] or 1 for name in names) for point in points]
    columns = [
        [int(product.at(point) * scale) for point, scale in zip(points, scales, strict=True)] for product in products
    ]
    target = [value * scale for value, scale in zip(values, scales, strict=True)]
    several = [islice(combinations(range(len(products)), terms), MOST_SUMS) for terms in range(1, most + 1)]
    simple = [number for number, product in enumerate(products) if len(product.above) < 3 and not product.below]
    with_name = {number for number, product in enumerate(products) if having in product.names}
    for chosen in chain(*several, [tuple(simple)]):
        if having and with_name.isdisjoint(chosen):
            continue
        factors = _solve([columns[number] for number in chosen], target)
        if factors is not None and _checked(points, [products[number] for number in chosen], len(chosen)):
            return _written([(factor, products[number]) for factor, number in zip(factors, chosen, strict=True)])
    return None


def _different(points: Sequence[Point], *products: _Product) -> int:
    """Count the points that differ in the arguments of these products.

    Equal points check nothing.
    """
    used = set().union(*(product.names for product in products))
    return len({tuple(point[name] for name in used) for point in points})


def _checked(points: Sequence[Point], products: Sequence[_Product], constants: int) -> bool:
    """Return whether the points check a form with `constants` free constants.

    Each argument must have more values than the form has constants: a parabola passes through any
    three points. A switch has only two values, so a form of switches is checked if every
    combination was seen.
    """
    used: set[Expression] = set().union(*(product.names for product in products))
    switches: set[Expression] = {name for name in used if all(type(point[name]) is bool for point in points)}
    if used and used == switches:
        return _different(points, *products) == 1 << len(used)
    enough: bool = all(len({point[name] for point in points}) > constants for name in used - switches)
    return enough and _different(points, *products) > constants


def _solve(columns: Sequence[Sequence[int]], values: Sequence[int]) -> list[Fraction] | None:
    """Return the factors with which the columns sum to `values` in every row.

    Return None if there are none, or many.
    """
    reduced: list[tuple[int, list[int]]] = []  # (pivot column, row); later rows hold 0 in that column
    for row in zip(*columns, values, strict=True):
        rest = list(row)
        for place, other in reduced:
            if rest[place]:
                mine, theirs = other[place], rest[place]
                rest = [mine * one - theirs * two for one, two in zip(rest, other, strict=True)]
        first = next((place for place, number in enumerate(rest[:-1]) if number), None)
        if first is not None:
            common = math.gcd(*rest)
            reduced.append((first, [number // common for number in rest]))
        elif rest[-1]:
            return None
    if len(reduced) < len(columns):
        return None
    factors = [Fraction(0)] * len(columns)
    for place, line in reversed(reduced):
        others_sum = sum((line[other] * factors[other] for other in range(len(columns)) if other != place), Fraction(0))
        factors[place] = (line[-1] - others_sum) / line[place]
    return factors


def _written(terms: Iterable[tuple[Fraction, _Product]]) -> Expression:
    """Return a sum of products as an expression: long products first, subtractions last."""
    ordered = sorted((term for term in terms if term[0]), key=lambda term: (term[0] < 0, -len(term[1].above)))
    total = _term(*ordered[0])  # a size is never negative, so the first term is positive
    for factor, product in ordered[1:]:
        total = ("+" if factor > 0 else "-", total, _term(abs(factor), product))
    return total


def _term(factor: Fraction, product: _Product) -> Expression:
    above, below = _quotient(factor, product)
    return above if below == 1 else ("/", above, below)


def _quotient(factor: Fraction, product: _Product) -> tuple[Expression, Expression]:
    above = _times([factor.numerator, *product.above])
    return above, _times([factor.denominator, *([product.below] if product.below else [])])


def _times(factors: Iterable[Expression]) -> Expression:
    whole: Expression = 1
    for factor in factors:
        whole = factor if whole == 1 else whole if factor == 1 else ("*", whole, factor)
    return whole


# -- roundings ------------------------------------------------------------------------------------


def _rounded(points: Sequence[Point], values: Sequence[int], names: Sequence[str]) -> Expression | None:
    """Return the simplest product rounded to a multiple, plus or minus at most 1.

    It is a multiple of a number or of an argument.
    """
    found: list[tuple[int, Expression]] = []
    products = [
        product
        for product in _products(names, points)
        if product.names and _different(points, product) >= FEWEST_FOR_ROUNDING and _checked(points, [product], 2)
    ]
    for more in (0, 1, -1):
        moved = [value - more for value in values]
        for unit in _units(points, moved, names):
            units = [evaluate(unit, point) for point in points]
            counts = [Fraction(value, size) for value, size in zip(moved, units, strict=True)]
            for product in products:
                sizes = [product.at(point) for point in points]
                if not all(sizes):
                    continue
                for rounding in ("floor", "ceil"):
                    between = _bounds(rounding, counts, sizes, unit if isinstance(unit, int) else 1)
                    if between is None:
                        continue
                    factor = between / (unit if isinstance(unit, int) else 1)
                    above, below = _quotient(factor, product)
                    form = _times([unit, (rounding, above, below)])
                    form = form if not more else ("+" if more > 0 else "-", form, 1)
                    weight = between.numerator + between.denominator + 2 * len(product.names) + 3 * abs(more)
                    found.append((weight, form))
    fitting = [
        (weight, form)
        for weight, form in found
        if all(holds(form, point, value) for point, value in zip(points, values, strict=True))
    ]
    return min(fitting, key=lambda pair: pair[0])[1] if fitting else None


def _rounded_twice(points: Sequence[Point], values: Sequence[int], names: Sequence[str]) -> Expression | None:
    """Return a multiple of a width that was rounded before.

    Llama's code computes ``int(8 * d / 3)``, then ``int(1.3 * …)``, then the multiple.
    """
    for unit in _units(points, values, names):
        for name in names:
            if not _checked(points, [_Product((name,))], 2) or len({p[name] for p in points}) < FEWEST_FOR_ROUNDING:
                continue
            once: Expression = ("floor", ("*", 8, name), 3)
            for inner in (once, *(("floor", ("*", tenths, once), 10) for tenths in TENTHS)):
                form = _times([unit, ("ceil", inner, unit)])
                if all(map(partial(holds, form), points, values)):
                    return form
    return None


def _units(points: Sequence[Point], values: Sequence[int], names: Sequence[str]) -> Iterator[Expression]:
    """Yield the greatest common divisor of the values, and each argument that divides them."""
    largest = math.gcd(*values)
    if largest:
        yield largest
    for name in names:
        if all(point[name] and value % point[name] == 0 for point, value in zip(points, values, strict=True)):
            yield name


def _bounds(rounding: str, counts: Sequence[Fraction], sizes: Sequence[Number], unit: int) -> Fraction | None:
    """Return the simplest factor with which every size, in units, rounds to its count, or None."""
    up = rounding == "ceil"
    # Integers until the interval is known: it closes after a few sizes where no factor fits.
    low, low_of, high, high_of = -1, 1, 1, 0  # low / low_of and high / high_of, at first -1 and infinity
    for count, size in zip(counts, sizes, strict=True):
        once = unit * size.denominator
        of = count.denominator * size.numerator
        below = once * (count.numerator - up * count.denominator)
        above = once * (count.numerator + (not up) * count.denominator)
        if below * low_of > low * of:
            low, low_of = below, of
        if above * high_of < high * of:
            high, high_of = above, of
        # Rounding up excludes the lower bound and includes the upper one; down is the reverse.
        if low * high_of >= high * low_of:
            return None
    return _factor_between(Fraction(low, low_of), Fraction(high, high_of), up=up) if high > 0 else None


def _factor_between(low: Fraction, high: Fraction, *, up: bool) -> Fraction | None:
    """Return the simplest factor from `low` to `high`, of which rounding up includes the latter."""
    inside = high if up else low
    found = _simplest(low, high)
    if inside > 0 and inside.denominator <= found.denominator:
        found = inside
    # Any interval this wide contains a fraction with such a denominator, so it would prove nothing.
    return found if found.denominator**2 * (high - low) < 1 else None


def _simplest(low: Fraction, high: Fraction) -> Fraction:
    """Return the fraction with the smallest denominator strictly between two (Stern-Brocot)."""
    whole = math.floor(low)
    if whole + 1 < high:
        return Fraction(whole + 1)
    if low == whole:  # strictly between `whole` and `high`: whole + 1/n with the smallest n
        return whole + Fraction(1, math.floor(1 / (high - whole)) + 1)
    return whole + 1 / _simplest(1 / (high - whole), 1 / (low - whole))


# -- two in one -----------------------------------------------------------------------------------


def _bounded(points: Sequence[Point], values: Sequence[int], names: Sequence[str]) -> Expression | None:
    """Return the maximum or minimum of two forms: a product (or number), and another form."""
    products = [product for product in _products(names, points) if len(product.above) < 3 and not product.below]
    for symbol, extreme in (("max", min), ("min", max)):
        for product in products:
            sizes = [product.at(point) for point in points]
            if not all(sizes):
                continue
            factor = extreme(Fraction(value, size) for value, size in zip(values, sizes, strict=True))
            limit = _term(factor, product)
            bound: list[tuple[Point, int]] = []
            free: list[tuple[Point, int]] = []
            for point, value in zip(points, values, strict=True):
                (bound if holds(limit, point, value) else free).append((point, value))
            if len(bound) < 3 or len(free) < 4:  # too few points on one side
                continue
            above, over = [point for point, _ in free], [value for _, value in free]
            if len(set(over)) == 1:
                inside: Expression | None = over[0]
            else:
                inside = _sum(above, over, names, most=2) or (None if product.above else _rounded(above, over, names))
            form = (symbol, limit, inside) if inside is not None else None
            if form and _shown_twice(form, bound, free) and all(map(partial(holds, form), points, values)):
                return form
    return None


def _shown_twice(form: Expression, bound: Sequence[tuple[Point, int]], free: Sequence[tuple[Point, int]]) -> bool:
    """Return whether each side of a bound was seen at two values of one of its arguments."""
    used = set(keys(form))
    return all(any(len({point[name] for point, _ in side}) > 1 for name in used) for side in (bound, free))


def _sum_with_rounding(
    points: Sequence[Point], values: Sequence[int], names: Sequence[str], known: Iterable[Expression]
) -> Expression | None:
    """Return a sum with one rounding as an argument: ``(h + 2*k)*(d//h)``, ``⌈d/16⌉ + 2*n``."""
    quotients: list[Expression] = [("floor", one, other) for one, other in permutations(names, 2)]
    for rounding in (*known, *quotients):
        try:
            extended = [{**point, rounding: int(evaluate(rounding, point))} for point in points]
        except ZeroDivisionError:
            continue
        found = _sum(extended, values, [rounding, *names], most=2, having=rounding)
        if found is not None:
            return found
    return None
