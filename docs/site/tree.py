"""CONTRIBUTING's trees of the sources and of what tests share, from the first line of each file's
docstring.

python docs/site/tree.py CONTRIBUTING.md
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "tallystick"
SUPPORT = ROOT / "tests" / "support"
NOT_LISTED = {"architectures", "families", "presets"}  # one file for each model type or publisher, as its room says
COLUMN = 26  # where the sentences begin
_TREE = re.compile(r"(^src/tallystick/\n).*?(^tests/.*?\n  support/.*?\n).*?(?=^  measured/)", re.DOTALL | re.MULTILINE)


@cache
def first_line(file: Path) -> str:
    """The first paragraph of a file's docstring, without its full stop; "" where it has none."""
    documented = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return " ".join(documented.partition("\n\n")[0].split()).rstrip(".")


def tree(folder: Path, depth: int = 1) -> Iterator[str]:
    """A line for each file below a folder, and for each folder: files first."""
    files = sorted(path for path in folder.glob("*.py") if path.name != "__init__.py")
    for file in files if folder.name not in NOT_LISTED else [file for file in files if file.name == "aliases.py"]:
        yield _line(file.name, first_line(file), depth)
    for room in sorted(path.parent for path in folder.glob("*/__init__.py")):
        yield _line(f"{room.name}/", first_line(room / "__init__.py"), depth)
        yield from tree(room, depth + 1)


def with_tree(text: str) -> str:
    """A text with the trees of now in the place of those in it."""
    package, support = ("".join(f"{line}\n" for line in lines) for lines in (tree(PACKAGE), tree(SUPPORT, 2)))
    return _TREE.sub(lambda found: found[1] + package + found[2] + support, text, count=1)


def _line(name: str, sentence: str, depth: int) -> str:
    return f"{'  ' * depth + name:<{COLUMN - 1}} {sentence}"


if __name__ == "__main__":
    page = Path(sys.argv[1])
    page.write_text(with_tree(page.read_text(encoding="utf-8")), encoding="utf-8")
