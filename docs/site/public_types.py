"""Check with pyright that the documented part of the library is typed completely: `make types`.

pyright takes every module without an underscore for public. Public is what docs/python lists:
the functions and classes there, with their members.
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
LISTED = re.compile(r"^::: (\S+)(?:\n {4}options: \{members: \[([^\]]*)\])?", re.MULTILINE)


def documented() -> list[str]:
    """Return the full names of the functions and classes that docs/python lists."""
    page = "\n".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs" / "python").glob("*.md")))
    found = []
    for name, members in LISTED.findall(page):
        place = ROOT / "src" / Path(*name.split("."))
        file = next((one for one in (place.with_suffix(".py"), place / "__init__.py") if one.is_file()), None)
        listed = members.split(", ") if members else defined(file) if file else []
        found += [f"{name}.{member}" for member in listed] or [name]
    return found


def defined(file: Path) -> list[str]:
    """Return the names in a file's ``__all__``, or else those it defines without underscore."""
    body = ast.parse(file.read_text(encoding="utf-8")).body
    for node in body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    return [node.name for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name[0] != "_"]


def main() -> int:
    """Print each documented symbol whose type is not complete, and return how many there are."""
    ran = subprocess.run(
        [sys.executable, "-m", "pyright", "--ignoreexternal", "--verifytypes", "tallystick", "--outputjson"],
        capture_output=True,
        text=True,
        check=False,  # it fails as long as any module is incomplete
        env={**os.environ, "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))},
    )
    symbols = json.loads(ran.stdout)["typeCompleteness"]["symbols"]
    public = documented()
    checked = [
        symbol
        for symbol in symbols
        if any(
            name == one or name.startswith(f"{one}.")
            for name in (symbol["name"], *symbol.get("alternateNames", ()))
            for one in public
        )
    ]
    open_ = [symbol for symbol in checked if not symbol["isTypeKnown"] or symbol["isTypeAmbiguous"]]
    for symbol in open_:
        why = symbol["diagnostics"][0]["message"].splitlines()[0] if symbol["diagnostics"] else "a part of it is not"
        sys.stdout.write(f"{symbol['name']}: {why}\n")
    sys.stdout.write(f"{len(checked) - len(open_)} of {len(checked)} documented symbols have a complete type\n")
    return len(open_)


if __name__ == "__main__":
    sys.exit(main() > 0)
