"""Read an answer that was written as text: a number, or a product of sizes."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from inspect import Parameter, Signature
from typing import Any

from tallystick.core.syntax import parsed
from tallystick.errors import BadInput, quoted

LONGEST = 2_000  # characters of an answer
MOST_BITS = 4_096  # of a number in it

_OPERATORS: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: Fraction,
    ast.FloorDiv: operator.floordiv,
}
_MARKS = str.maketrans({"×": "*", "·": "*", "⋅": "*", "−": "-", "÷": "/", "^": "\0", "²": "\1", "³": "\2"})


class Written:
    """An answer as a function of the sizes that it names.

    Args:
        text: ``"2 × 768"``, ``"38,597,376"``, ``"n_layers·(12·d_model² + 9·d_model)"``.

    Raises:
        BadInput: if it is neither a number nor such an expression.

    >>> Written("V·d + 1,000")(V=10, d=3)
    1030
    """

    def __init__(self, text: str) -> None:
        self.text = text
        python = re.sub(r"(?<=\d),(?=\d{3}\b)", "", text.strip()).translate(_MARKS)
        python = python.replace("\0", "**").replace("\1", "**2").replace("\2", "**3")
        try:
            self._tree = parsed(python, "eval").body if len(text) <= LONGEST else None
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            self._tree = None
        if self._tree is None or not all(map(_known, ast.walk(self._tree))):
            raise BadInput(
                f"{quoted(text)} is not an answer: write a number, or an expression such as 2*vocab_size*d_model",
                code="bad-value",
            )
        names = dict.fromkeys(node.id for node in ast.walk(self._tree) if isinstance(node, ast.Name))
        self.__signature__ = Signature([Parameter(name, Parameter.KEYWORD_ONLY) for name in names])

    @property
    def names(self) -> tuple[str, ...]:
        """The sizes that it names."""
        return tuple(self.__signature__.parameters)

    def __call__(self, **sizes: int) -> int | Fraction:
        """Return the value at some sizes."""
        value: int | Fraction = _value(self._tree, sizes)
        return value


def _known(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant):
        return type(node.value) is int
    if isinstance(node, ast.Name):
        return True
    shapes = (ast.BinOp, ast.UnaryOp, ast.USub, ast.UAdd, ast.Pow, ast.expr_context)
    return isinstance(node, (*shapes, *_OPERATORS))


def _value(node: ast.AST | None, sizes: Mapping[str, int]) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return sizes[node.id]
    if isinstance(node, ast.UnaryOp):
        value = _value(node.operand, sizes)
        return -value if isinstance(node.op, ast.USub) else value
    assert isinstance(node, ast.BinOp)  # noqa: S101  # `_known` let nothing else through
    left, right = _value(node.left, sizes), _value(node.right, sizes)
    if isinstance(node.op, ast.Pow):
        if not 0 <= right <= 8:
            raise BadInput(f"{right} is not a power from 0 to 8", code="bad-value")
        result = left**right
    else:
        result = _OPERATORS[type(node.op)](left, right)
    if max(abs(result.numerator), result.denominator).bit_length() > MOST_BITS:
        raise BadInput("the numbers of the answer are too large", code="too-large")
    return result
