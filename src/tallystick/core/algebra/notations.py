"""Write an expression in a notation: Python, plain text, plain text in numbers, or LaTeX."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from tallystick.core.algebra.expressions import Expression

_PRECEDENCE = {"+": 1, "-": 1, "floor": 2, "ceil": 2, "*": 3, "/": 3, "**": 4}
_SUM, _PRODUCT, _ATOM = 1, 3, 5
_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


class Notation(NamedTuple):
    """How operators, keys and numbers are written; in `floor`, `ceil` and `bound`, {} are sides."""

    times: str
    over: str
    power: Callable[[int], str]  # what follows the base
    floor: str
    ceil: str
    bound: str  # the maximum or minimum of two: its name, left, right
    fenced: bool = True  # whether `floor` and `ceil` have brackets of their own
    bar: bool = False  # whether their sides are above and below a fraction bar
    parentheses: str = "({})"
    key: Callable[[str], str] = str
    thousands: str = ""  # their separator


def _superscript(power: int) -> str:
    return str(power).translate(_SUPERSCRIPTS)


PYTHON = Notation("*", "/", "**{}".format, "{}//{}", "-(-{}//{})", "{}({}, {})", fenced=False)
TEXT = Notation("·", "/", _superscript, "⌊{}/{}⌋", "⌈{}/{}⌉", "{}({}, {})")
NUMBERS = TEXT._replace(times=" × ", thousands=",")
LATEX = Notation(
    r" \cdot ",
    " / ",
    "^{{{}}}".format,
    r"\left\lfloor{{\frac{{{}}}{{{}}}}}\right\rfloor",
    r"\left\lceil{{\frac{{{}}}{{{}}}}}\right\rceil",
    r"\{}\left({}, {}\right)",
    bar=True,
    parentheses=r"\left({}\right)",
    key=lambda key: (
        rf"\mathrm{{{key.replace('_', chr(92) + '_')}}}"
    ),  # upright: n_embd is one name, not n with an index
)

LATEX_NUMBERS = LATEX._replace(times=r" \times ", thousands="{,}")


def write(expression: Expression, notation: Notation = PYTHON, values: Mapping[str, int] | None = None) -> str:
    r"""Return an expression as text, with the fewest parentheses.

    Args:
        expression: the expression.
        notation: how to write it. `PYTHON` is valid in Python and SymPy.
        values: numbers that replace the keys; None keeps the keys.

    >>> write(("*", "n_embd", ("*", 3, "n_embd")))
    'n_embd*3*n_embd'
    >>> write(("*", 2, ("+", "a", "b")), NUMBERS, {"a": 3, "b": 4})
    '2 × (3 + 4)'
    >>> write(("*", 256, ("ceil", "d", 96))), write(("*", 256, ("ceil", "d", 96)), TEXT)
    ('256*(-(-d//96))', '256·⌈d/96⌉')
    >>> write(("*", 2, ("**", "n_embd", 2)), LATEX)
    '2 \\cdot \\mathrm{n\\_embd}^{2}'
    """

    def part(node: Expression, least: int) -> str:
        if isinstance(node, str):
            if values is None:
                return notation.key(node)
            node = values[node]
        if isinstance(node, int):
            return f"{node:,}".replace(",", notation.thousands)
        symbol, left, right = node
        level = _PRECEDENCE.get(symbol, _ATOM)
        if symbol in ("max", "min"):
            text = notation.bound.format(symbol, part(left, 0), part(right, 0))
        elif symbol in ("floor", "ceil"):
            level = _ATOM if notation.fenced else level
            above, below = (0, 0) if notation.bar else (_PRODUCT, _ATOM)
            rounded = notation.floor if symbol == "floor" else notation.ceil
            text = rounded.format(part(left, above), part(right, below))
        elif symbol == "**":
            text = part(left, _ATOM) + notation.power(int(part(right, 0)))
        elif symbol in ("+", "-"):
            text = joined(node)
        else:
            # a/(b*c) needs its parentheses; a*(b*c) does not.
            text = (
                part(left, level)
                + (notation.times if symbol == "*" else notation.over)
                + part(right, level + (symbol == "/"))
            )
        return notation.parentheses.format(text) if level < least else text

    def joined(node: Expression) -> str:
        (sign, first), *rest = _summands(node)
        text = part(first, _SUM) if sign == "+" else "-" + part(first, _PRODUCT)
        return text + "".join(f" {sign} {part(term, _PRODUCT)}" for sign, term in rest)

    return part(expression, 0)


def _summands(node: Expression) -> list[tuple[str, Expression]]:
    """Return the terms of a sum with their signs; 0 - a is -a.

    No recursion into a long sum. The parentheses of a + (b - c) are dropped, those of a - (b - c)
    are not.
    """
    backwards: list[tuple[str, Expression]] = []
    while isinstance(node, tuple) and node[0] in ("+", "-"):
        backwards.append((node[0], node[2]))
        node = node[1]
    terms = [("+", node)]
    for sign, term in reversed(backwards):
        terms += _summands(term) if sign == "+" else [(sign, term)]
    return terms[1:] if terms[0] == ("+", 0) and len(terms) > 1 else terms
