"""Typeset a closed form as MathML, with its terms in written order."""

from __future__ import annotations

import ast
from html import escape
from typing import TYPE_CHECKING

from tallystick.report.numbers import exact

if TYPE_CHECKING:
    from tallystick.report.terms import Terms

MOST_CHARACTERS = 20_000  # of an expression; a longer one stays text
_SIGNS: dict[type, str] = {ast.Add: "+", ast.Sub: "−", ast.Mult: "·"}
_PRODUCT, _POWER = 2, 3  # precedence of the surrounding sum or product


def typeset(expression: str, terms: Terms | None = None) -> str:
    """Return an expression as HTML: one ``<math>`` per summand, for line breaks between them.

    Args:
        expression: in Python's arithmetic.
        terms: the parts of the model that terms count, to be marked; None marks nothing.

    >>> typeset("2*n_embd**2")
    '<math><mrow><mn>2</mn><mo>·</mo><msup><mi>n_embd</mi><mn>2</mn></msup></mrow></math>'
    """
    if len(expression) > MOST_CHARACTERS:
        return escape(expression)
    summands = _summands(ast.parse(expression, mode="eval").body)
    return " ".join(f"<math>{_infix(sign)}{_marked(term, bool(sign), terms)}</math>" for sign, term in summands)


def _marked(term: ast.expr, signed: bool, terms: Terms | None) -> str:
    """Return a summand's markup, in which the terms of a block are marked one by one."""
    plain = _node(term, _PRODUCT if signed else 0)
    if terms is None:
        return plain
    if not (isinstance(term, ast.BinOp) and isinstance(term.op, ast.Mult) and _is_sum(term.right)):
        return _part(terms.alone(term), plain)
    inner = "".join(
        _infix(sign) + _part(terms.inside(term.left, one), _node(one, _PRODUCT if sign == "−" else 0))
        for sign, one in _summands(term.right)
    )
    return f"<mrow>{_node(term.left, _PRODUCT)}{_operator('·')}{_fenced('(', inner, ')')}</mrow>"


def _is_sum(node: ast.expr) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub)


def _part(roles: str, markup: str) -> str:
    return f'<mrow data-part="{escape(roles)}">{markup}</mrow>' if roles else markup


def _summands(node: ast.expr) -> list[tuple[str, ast.expr]]:
    """Return the terms of a sum with their signs, without recursion into a long sum."""
    found: list[tuple[str, ast.expr]] = []
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        found.append((_SIGNS[type(node.op)], node.right))
        node = node.left
    return [("", node), *reversed(found)]


def _node(node: ast.expr, least: int = 0) -> str:
    """Return a node's markup, in parentheses if its precedence is below `least`."""
    match node:
        case ast.Constant():
            written = f"<mn>{exact(int(str(node.value)))}</mn>"
        case ast.Name():
            written = f"<mi>{escape(node.id)}</mi>"
        case ast.Call(func=ast.Name(id=name), args=arguments):
            inner = _operator(",").join(_node(one) for one in arguments)
            written = f"<mrow><mi>{escape(name)}</mi>{_fenced('(', inner, ')')}</mrow>"
        case ast.UnaryOp(operand=ast.BinOp(op=ast.FloorDiv(), left=ast.UnaryOp(operand=above), right=below)):
            written = _fenced("⌈", _fraction(above, below), "⌉")  # -(-a//b) is Python's ceiling division
        case ast.BinOp(op=ast.FloorDiv(), left=above, right=below):
            written = _fenced("⌊", _fraction(above, below), "⌋")
        case ast.BinOp(op=ast.Div(), left=above, right=below):
            written = _fraction(above, below)
        case ast.UnaryOp(operand=inner_node):
            written = f"<mrow>{_operator('−')}{_node(inner_node, _PRODUCT)}</mrow>"
        case ast.BinOp(op=ast.Pow(), left=base, right=power):
            written = f"<msup>{_node(base, _POWER)}{_node(power)}</msup>"
        case ast.BinOp(op=ast.Add() | ast.Sub()):
            terms = (f"{_infix(sign)}{_node(term, _PRODUCT if sign == '−' else 0)}" for sign, term in _summands(node))
            inner = "".join(terms)
            written = _fenced("(", inner, ")") if least >= _PRODUCT else f"<mrow>{inner}</mrow>"
        case ast.BinOp(op=ast.Mult(), left=left, right=right):
            inner = f"{_node(left, _PRODUCT)}{_operator('·')}{_node(right, _PRODUCT)}"
            written = _fenced("(", inner, ")") if least >= _POWER else f"<mrow>{inner}</mrow>"
        case _:
            raise ValueError(f"no arithmetic: {ast.dump(node)}")
    return written


def _fraction(above: ast.expr, below: ast.expr) -> str:
    return f"<mfrac>{_node(above)}{_node(below)}</mfrac>"


def _fenced(left: str, inner: str, right: str) -> str:
    return f"<mrow>{_operator(left)}{inner}{_operator(right)}</mrow>"


def _infix(sign: str) -> str:
    """Return a sign spaced as a binary operator, even if it is first in its ``<math>``."""
    return f'<mo form="infix">{sign}</mo>' if sign else ""


def _operator(sign: str) -> str:
    return f"<mo>{sign}</mo>"
