"""Find which parts of a model each term of its closed form counts."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from typing import TypeAlias

from tallystick.answers.formula import Formula
from tallystick.core.algebra.expressions import Expression
from tallystick.core.algebra.polynomials import Monomial, expand

Powers: TypeAlias = frozenset[Monomial]

_SIGNS: dict[type, str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}


class Terms:
    """The roles of a formula's terms, by the keys and powers in them.

    A term of a block may count several roles: 12·n_embd² is attention and MLP.
    """

    def __init__(self, formula: Formula) -> None:
        self._inside: dict[tuple[Powers, Monomial], dict[str, None]] = {}  # of a block, by what repeats it
        self._alone: dict[Monomial, list[str]] = {}
        for section in formula.sections:
            repeats = _powers_of(section.repeats)
            for step in section.steps:
                if not step.value:
                    continue
                for monomial in _powers_of(step.expression):
                    if section.layers > 1 or section.repeats != "1":
                        self._inside.setdefault((repeats, monomial), {})[step.role] = None
                    else:
                        self._alone.setdefault(monomial, []).append(step.role)

    def alone(self, term: ast.expr) -> str:
        """Return the roles of a term outside of all blocks; of equal terms, of the next one."""
        found = [role for one in powers(term) if one for role in self._next(one)]
        return " ".join(dict.fromkeys(found))

    def _next(self, monomial: Monomial) -> list[str]:
        roles = self._alone.get(monomial, [])
        if roles and len(set(roles)) > 1:  # vocabulary × width is the embedding, and then the head
            return [roles.pop(0)]
        return roles

    def inside(self, repeats: ast.expr, term: ast.expr) -> str:
        """Return the roles of a term of a block."""
        around = powers(repeats)
        found: dict[str, None] = {}
        for one in powers(term):
            found |= self._inside.get((around, one)) or self._anywhere(one)
        return " ".join(found)

    def _anywhere(self, monomial: Monomial) -> dict[str, None]:
        """Return the roles of a product in any block: runs of equal blocks are added up."""
        found = dict.fromkeys(self._alone.get(monomial, ()))
        for (_, one), roles in self._inside.items():
            found |= roles if one == monomial else {}
        return found


def powers(term: ast.expr) -> Powers:
    """Return the products in a term without their numbers.

    >>> powers(ast.parse("3*a*b", mode="eval").body) == powers(ast.parse("b*a", mode="eval").body)
    True
    """
    return frozenset(expand(_expression(term)))


@lru_cache(maxsize=512)  # a hybrid model has the same block dozens of times
def _powers_of(expression: str) -> Powers:
    return powers(ast.parse(expression, mode="eval").body)


def _expression(node: ast.expr) -> Expression:
    """Return Python's arithmetic as an expression; what is not + - * / is one factor."""
    match node:
        case ast.Constant(value=int(number)):
            return number
        case ast.Name(id=name):
            return name
        case ast.BinOp(op=ast.Pow(), left=base, right=ast.Constant(value=int(power))) if power > 0:
            return _times(_expression(base) for _ in range(power))
        case ast.BinOp(op=operator, left=left, right=right) if type(operator) in _SIGNS:
            return (_SIGNS[type(operator)], _expression(left), _expression(right))
        case _:
            return ast.unparse(node)


def _times(factors: Iterator[Expression]) -> Expression:
    product = next(factors)
    for factor in factors:
        product = ("*", product, factor)
    return product
