"""Begin an architecture: write its file and its entry in the tests, as copies of those of a type
that it resembles.

python tests/support/new_architecture.py exaone --like llama --config exaone/config.json
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import fill
from typing import Any, NamedTuple

import unpackaged
from configs import FAMILIES
from repository import ROOT
from tallystick import architectures
from tallystick.core.registry import Architecture
from tallystick.errors import nearest
from tallystick.presets import PRESETS

Values = dict[str, Any]

ARCHITECTURES, SUPPORT = Path("src/tallystick/architectures"), Path("tests/support")
UNPACKAGED, SKELETONS = SUPPORT / "unpackaged.py", SUPPORT / "skeletons.py"
# Keys of any config.json that change no tensor.
BOOKKEEPING = {
    "_name_or_path", "architectures", "auto_map", "model_type", "torch_dtype", "dtype", "transformers_version", "use_cache",
    "initializer_range", "bos_token_id", "eos_token_id", "pad_token_id",
}  # fmt: skip
NEXT = """\
next:
  1. {file}: replace keys, defaults and names by those of the published code; CONTRIBUTING.md says what each declaration buys
  2. {check}
  3. make measure architectures: tests/measured has its figures, docs/architectures.md lists it
"""


class Refused(Exception):
    """What was asked for cannot be written."""


class Edit(NamedTuple):
    """Text in place of that of a node."""

    node: ast.expr | ast.stmt
    text: str


def begin(name: str, like: str, values: Values, *, packaged: bool, root: Path = ROOT) -> list[Path]:
    """Write what a new type needs.

    Args:
        name: its model_type.
        like: the native type whose files are copied.
        values: a config.json of it, or nothing.
        packaged: whether transformers builds it, so that drawn configs can be compared with that.
        root: the repository.

    Returns:
        The files that were written, those of `root`.

    Raises:
        Refused: where there is such a type already, or `like` has no file of its own or no entry in
        the tests.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_-]*", name):
        raise Refused(f"NAME is {name!r}: expected a model_type, in lower case, digits, - and _")
    file = ARCHITECTURES / f"{name}.py"
    if name in architectures.known() or (root / file).exists():
        raise Refused(f"{name} is a native type already: {file} is left as it is")
    smalls = {kind: tested.small for tests in (FAMILIES, unpackaged.UNPACKAGED) for kind, tested in tests.items()}
    if like not in smalls:
        raise Refused(f"LIKE is {like!r}, which is no native type{nearest(like, smalls)}")
    if like in architectures.ALIASES:
        raise Refused(
            f"{like} is another name of {architectures.ALIASES[like].like}: take LIKE={architectures.ALIASES[like].like}"
        )
    family = architectures.find(like)
    assert family is not None
    values = {family.aliases.get(key, key): value for key, value in values.items()}
    written = {file: skeleton((root / ARCHITECTURES / f"{like}.py").read_text(encoding="utf-8"), name, family, values)}
    if packaged:
        written |= [_with_family(root, name, like)]
    else:
        text = (root / UNPACKAGED).read_text(encoding="utf-8")
        written[UNPACKAGED] = _with_unpackaged(text, name, smalls[like], family, values)
    for path, text in written.items():
        (root / path).write_text(text, encoding="utf-8")
    return list(written)


# -- the architecture's file ----------------------------------------------------------------------


def skeleton(text: str, name: str, family: Architecture, values: Values) -> str:
    """The file of a family under another name, whose defaults are those that a config states."""
    tree = ast.parse(text)
    call, function = next(_registrations(tree, family.name))
    stated = [str(one) for one in values.get("architectures") or ()]
    class_name = stated[0] if stated else f"{name.title().replace('_', '').replace('-', '')}ForCausalLM"
    edits = [
        Edit(tree.body[0], f'"""{name} (authors, year, "Title of its report"): {_unread(family, values)}"""'),
        Edit(call.args[0], f'"{name}"'),
        *(Edit(second, f'"{class_name}"') for second in call.args[1:2]),
        *(
            Edit(keyword.value, default)
            for keyword in call.keywords
            if keyword.arg in family.keys
            and keyword.arg in values
            and (default := _default(keyword.value, values[keyword.arg]))
        ),
    ]
    changed = _edited(text, edits)
    return re.sub(rf"^def {function.name}\(", f"def {name.replace('-', '_')}(", changed, flags=re.MULTILINE)


def _registrations(tree: ast.Module, name: str) -> Iterator[tuple[ast.Call, ast.FunctionDef]]:
    """The decorator that registers a family, and the function that it decorates."""
    for node in tree.body:
        for call in node.decorator_list if isinstance(node, ast.FunctionDef) else ():
            if isinstance(call, ast.Call) and call.args and getattr(call.args[0], "value", None) == name:
                assert isinstance(node, ast.FunctionDef)
                yield call, node
    raise Refused(f"architectures/{name}.py registers {name} in a way that this cannot copy: take another LIKE")


def _default(declared: ast.expr, value: object) -> str:
    """A stated value as the default of a key that is declared so; "" where it is no simple one."""
    if isinstance(declared, ast.Call) and getattr(declared.func, "id", "") != "optional":
        return ""
    nullable = isinstance(declared, ast.Call)
    if value is None:
        return "optional()" if nullable else ""
    if not isinstance(value, bool | int):
        return ""
    return f"optional({value})" if nullable else repr(value)


def _unread(family: Architecture, values: Values) -> str:
    """What of a config the copied file does not read, to be looked through."""
    read = {*family.keys, *family.running, *family.aliases, *BOOKKEEPING}
    left = ", ".join(f"{key}={json.dumps(value)}" for key, value in values.items() if key not in read)
    listed = "\n\n" + fill(f"Not read of its config: {left}.", 100, break_long_words=False) + "\n" if left else ""
    return f"a copy of {family.name}'s.{listed}".replace("\\", "\\\\").replace('"""', "'''")


def _edited(text: str, edits: list[Edit]) -> str:
    """A text with the nodes of its tree replaced, the last first."""
    lines = text.encode().splitlines(keepends=True)  # columns of a tree are bytes
    starts = [sum(map(len, lines[:number])) for number in range(len(lines) + 1)]
    whole = text.encode()
    for node, new in sorted(edits, key=lambda edit: edit.node.lineno * 10_000 + edit.node.col_offset, reverse=True):
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        first, last = starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset
        whole = whole[:first] + new.encode() + whole[last:]
    return whole.decode()


# -- its entry in the tests -----------------------------------------------------------------------


def _with_family(root: Path, name: str, like: str) -> tuple[Path, str]:
    """The file of `FAMILIES` that holds a type, with the same entry for another after it."""
    for path in sorted((root / SUPPORT).glob("families_*.py")):
        text = path.read_text(encoding="utf-8")
        for key, value in _entries(ast.parse(text)):
            if key.value == like and getattr(getattr(value, "func", None), "id", "") == "Family":
                assert value.end_lineno is not None
                lines = text.splitlines(keepends=True)
                entry = "".join(lines[key.lineno - 1 : value.end_lineno])
                renamed = entry.replace(f'"{like}"', f'"{name}"')
                if entry.count(f'"{like}"') == 1:  # what draws it names its type elsewhere
                    renamed = re.sub(r"\),(.*\n)\Z", rf').renamed("{name}"),\1', renamed)
                lines.insert(value.end_lineno, renamed)
                return path.relative_to(root), "".join(lines)
    raise Refused(f"no families_*.py has an entry of its own for {like}: take another LIKE")


def _entries(tree: ast.Module) -> Iterator[tuple[ast.Constant, ast.expr]]:
    """Keys that are text, with their values, of all dictionaries."""
    for node in ast.walk(tree):
        for key, value in zip(node.keys, node.values, strict=True) if isinstance(node, ast.Dict) else ():
            if isinstance(key, ast.Constant):
                yield key, value


def _with_unpackaged(text: str, name: str, small: Any, family: Architecture, values: Values) -> str:
    """unpackaged.py with one more entry, whose published count is still to be found."""
    stated = {key: value for key, value in values.items() if key in family.keys}
    sizes = {key: value for key, value in small.items() if key in family.keys}
    entry = (
        f'    "{name}": Unpackaged(\n{_literal(sizes, 8)},\n'
        f"        [  # the published count of this config in place of the 0, and where it is from\n"
        f"            (\n{_literal(stated, 16)},\n                0,\n            ),\n        ],\n    ),\n"
    )
    before, begins, after = text.partition("UNPACKAGED: dict[str, Unpackaged] = {\n")
    entries, ends, rest = after.partition("\n}\n")
    return f"{before}{begins}{entries}\n{entry.rstrip()}{ends}{rest}"


def _literal(values: Values, indent: int) -> str:
    """A dictionary as it stands in a file."""
    space = " " * indent
    if not values:
        return space + "{}"
    lines = "".join(f'{space}    "{key}": {value!r},\n' for key, value in values.items())
    return f"{space}{{\n{lines}{space}}}"


# -- the command ----------------------------------------------------------------------------------


def _in_transformers(name: str) -> bool:
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    return name in CONFIG_MAPPING_NAMES


def _config(path: Path | None) -> Values:
    """A config.json, or nothing."""
    if path is None:
        return {}
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Refused(f"CONFIG={path} cannot be read as JSON: {error}") from error
    if not isinstance(values, dict):
        raise Refused(f"CONFIG={path} holds no object")
    return values


def selection(name: str) -> str:
    """What selects the tests of a type alone, by the first value in their ids: `[qwen]`, not
    `[qwen2]`.
    """
    taken = f"[{name}] or [{name}-"
    others = [one for one in (*architectures.known(), *PRESETS) if one.startswith(f"{name}-")]
    return " and not ".join([f"({taken})", *(f"[{one}" for one in others)]) if others else taken


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", help="the model_type, such as exaone")
    parser.add_argument("--like", default="llama", help="the native type that it resembles most (default: llama)")
    parser.add_argument("--config", type=Path, help="a config.json of it, whose values become the defaults")
    asked = parser.parse_args(arguments)
    try:
        packaged = _in_transformers(asked.name)
        written = begin(asked.name, asked.like, _config(asked.config), packaged=packaged, root=root)
    except Refused as refused:
        sys.stderr.write(f"make architecture: {refused}\n")
        return 2
    check = f'python -m pytest tests/architectures -k "{selection(asked.name)}"'
    if not packaged:
        check += (
            f"; transformers lacks {asked.name}: give {UNPACKAGED} the count that is published and what draws its"
            f" configs, and {SKELETONS} its constructor"
        )
    sys.stdout.write("".join(f"wrote {path}\n" for path in written))
    sys.stdout.write(NEXT.format(file=written[0], check=check))
    return 0


if __name__ == "__main__":
    sys.exit(main())
