"""What import-linter cannot see of the import rules in pyproject.toml: private names, circles
inside a room, and when torch is imported.
"""

import ast
from collections.abc import Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import tallystick
from syntax import nodes

PACKAGE = Path(tallystick.__file__).parent
FILES = {
    ".".join(("tallystick", *path.relative_to(PACKAGE).with_suffix("").parts)): path for path in PACKAGE.rglob("*.py")
}

# Rooms that need torch in any case, so that they import it at the top of a file.
TORCH = ("models", "training", "live")


def room(module: str) -> str:
    return module.split(".")[1] if module.count(".") else ""


def imported(statements: Iterable[ast.AST]) -> Iterator[str]:
    """Every name that these statements import, in full."""
    for node in statements:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def when_imported(tree: ast.Module) -> Iterator[ast.AST]:
    """The nodes that run as a module is imported: not those of functions, nor those for type
    checkers alone.
    """
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        for_checkers = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        waiting += node.orelse if for_checkers else ast.iter_child_nodes(node)


def private(module: str, source: str) -> set[tuple[str, str]]:
    """The private names of other rooms that a module imports."""
    return {
        (module, name)
        for name in imported(nodes(ast.parse(source)))
        if name.startswith("tallystick.") and room(name) != room(module)
        if any(part.startswith("_") and not part.startswith("__") for part in name.split("."))
    }


def modules_of(module: str, source: str, known: Iterable[str]) -> set[str]:
    """The modules that a module imports: at its top, in a function, or for type checkers."""
    names = set(imported(nodes(ast.parse(source))))
    # `from a.b import c` imports the module a.b.c if there is one, and else a name of a.b.
    return {name if name in known else name.rpartition(".")[0] for name in names}.intersection(known) - {module}


def circle(sources: Mapping[str, str]) -> list[str] | None:
    """The modules of an import circle, or None."""
    try:
        TopologicalSorter({module: modules_of(module, text, sources) for module, text in sources.items()}).prepare()
    except CycleError as error:
        return error.args[1]
    return None


def heavy(source: str) -> list[str]:
    """What of torch and of the libraries on it is imported as soon as a module is."""
    names = imported(when_imported(ast.parse(source)))
    return [
        name for name in names if name.partition(".")[0] in ("torch", "transformers", "accelerate", "peft", "torchao")
    ]


def test_private_names_stay_in_their_room():
    found = {pair for module, path in FILES.items() for pair in private(module, path.read_text(encoding="utf-8"))}
    assert not found


def test_no_imports_run_in_a_circle():
    sources = {module.removesuffix(".__init__"): path.read_text(encoding="utf-8") for module, path in FILES.items()}
    assert circle(sources) is None


def test_torch_waits_until_it_is_needed():
    light = {module: path for module, path in FILES.items() if room(module) not in TORCH}
    assert not [module for module, path in light.items() if heavy(path.read_text(encoding="utf-8"))]


def test_what_breaks_a_rule_is_found():
    assert private("tallystick.cli.x", "def f():\n    from tallystick.answers import _x") == {
        ("tallystick.cli.x", "tallystick.answers._x")
    }
    assert private("tallystick.cli.x", "from tallystick.answers._x import y")
    assert not private(
        "tallystick.answers.x", "from tallystick.answers._x import y\nfrom tallystick import __version__"
    )
    lazy, typed = "def f():\n    import t.b", "if TYPE_CHECKING:\n    from t.a import A"
    assert circle({"t": "", "t.a": lazy, "t.b": typed}) == ["t.a", "t.b", "t.a"]
    assert circle({"t": "", "t.a": lazy, "t.b": "import json"}) is None
    assert heavy("import torch.nn as nn") == ["torch.nn"]
    assert heavy("class A:\n    from torch import nn") == ["torch.nn"]
    assert heavy("try:\n    import transformers\nexcept ImportError:\n    pass")
    assert heavy("if TYPE_CHECKING:\n    pass\nelse:\n    import torch")
    assert not heavy("if TYPE_CHECKING:\n    import torch\ndef f():\n    import torch")
