"""Parse Python that somebody wrote, without running it and without the compiler's warnings.

>>> ast.unparse(parsed("12if 1else 3", "eval"))
'12 if 1 else 3'
"""

from __future__ import annotations

import ast
import warnings
from typing import Literal, overload


@overload
def parsed(source: str) -> ast.Module: ...
@overload
def parsed(source: str, mode: Literal["eval"]) -> ast.Expression: ...
def parsed(source: str, mode: str = "exec") -> ast.AST:
    """Return the syntax tree of a module or, in mode "eval", of an expression.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: as `ast.parse` does.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "invalid decimal literal" is printed for "12if"
        return ast.parse(source, mode=mode)
