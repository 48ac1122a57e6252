"""Parse configs pasted as Python: comments, ``True``, ``None``, ``torch.bfloat16``.

Only literals are read; no code is run.

>>> pasted = dictionaries('''GPT_CONFIG = {
...     "emb_dim": 768,     # width
...     "qkv_bias": False,  # Query-key-value bias
... }''')
>>> pasted[0].name, pasted[0].values
('GPT_CONFIG', {'emb_dim': 768, 'qkv_bias': False})
"""

from __future__ import annotations

import ast
import re
from typing import Any, NamedTuple

from tallystick.core.budget import current
from tallystick.core.syntax import parsed
from tallystick.errors import BadInput

LARGEST_DICTIONARY = 20_000  # characters
MOST_DICTIONARIES = 100  # in one text
MOST_NESTED = 20

_START = re.compile(r"(?:(?<![\w.])(?P<name>[A-Za-z_][\w.]{0,200}+)\s*(?::[^=\n{]{0,60})?=\s*)?(?P<brace>\{)")
_PIECE = re.compile(r"""#[^\n]*|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|[][{}()]""")


class Pasted(NamedTuple):
    """A dictionary in a text: its variable name or "", its first line and its values."""

    name: str
    line: int
    values: dict[str, Any]


def dictionaries(text: str) -> list[Pasted]:
    """Return the dictionaries with string keys in a text, in order; skip everything else."""
    found: list[Pasted] = []
    position, budget = 0, current()
    while len(found) < MOST_DICTIONARIES and (match := _START.search(text, position)):
        position = match.end()
        end = _end(text, match.start("brace"))
        budget.step(max(position, end) - match.start())
        values = _literal(text[match.start("brace") : end]) if end else None
        if isinstance(values, dict) and values and all(isinstance(key, str) for key in values):
            found.append(Pasted(match["name"] or "", text.count("\n", 0, match.start()) + 1, values))
            position = end
    return found


def dictionary_in(text: str, source: str) -> dict[str, Any] | None:
    """Return the only dictionary in a text, or None if it holds none.

    Args:
        text: any text, such as Python code.
        source: its name, for messages.

    Raises:
        BadInput: if the text holds several dictionaries.
    """
    found = dictionaries(text)
    if len(found) > 1:
        names = ", ".join(f"{one.name or 'one'} on line {one.line}" for one in found[:5])
        raise BadInput(f"{source} holds {len(found)} dictionaries ({names}): keep only one", code="ambiguous")
    return found[0].values if found else None


def _end(text: str, start: int) -> int:
    """Return the position after the closing brace, or 0 if it is too far away or missing."""
    depth = 0
    for piece in _PIECE.finditer(text, start, start + LARGEST_DICTIONARY):
        depth += (piece[0] in "[{(") - (piece[0] in ")}]")
        if depth == 0 and piece[0] == "}":
            return piece.end()
        if depth > MOST_NESTED:
            return 0
    return 0


def _literal(written: str) -> Any:
    try:
        tree = parsed(written, "eval")
        return _value(tree.body)
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return None


def _value(node: ast.expr) -> Any:
    """Return the value of a literal; raise `ValueError` for anything that needs to be computed."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str | int | float | bool | None):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand)
    if isinstance(node, ast.List | ast.Tuple):
        return [_value(item) for item in node.elts]
    if isinstance(node, ast.Dict):
        if None in node.keys:
            raise ValueError("**")
        return {_value(key): _value(item) for key, item in zip(node.keys, node.values, strict=True) if key is not None}
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ("torch", "jnp", "np"):
        return node.attr  # torch.bfloat16
    if isinstance(node, ast.Name) and node.id in _JSON:
        return _JSON[node.id]
    raise ValueError(type(node).__name__)


_JSON = {"true": True, "false": False, "null": None}
