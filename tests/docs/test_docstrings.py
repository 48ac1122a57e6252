"""All that docs/python lists says what it takes and what it returns, and shows a value."""

import ast
import inspect
import sys

import pytest

from repository import ROOT

sys.path.insert(0, str(ROOT / "docs" / "site"))
from field_comments import comment
from public_types import documented

# What cannot be shown in a line: it needs a trainer, or minutes.
NOT_SHOWN = {"tallystick.live.trainer.KeepTied", "tallystick.live.lightning.KeepTied", "tallystick.live.survive.survive",
             "tallystick.training.train.train"}  # fmt: skip


def documents(name):
    """Return the docstring and the definition of a documented name, without importing torch."""
    for place in range(name.count("."), 0, -1):
        parts = name.split(".")
        file = ROOT / "src" / "/".join(parts[:place])
        for path in (file.with_suffix(".py"), file / "__init__.py"):
            if path.is_file():
                node = defined_in(path, parts[place])
                if node is not None:
                    return node
    raise LookupError(name)


def defined_in(path, name):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
            return node
        if isinstance(node, ast.ImportFrom) and any((one.asname or one.name) == name for one in node.names):
            file = ROOT / "src" / "/".join(node.module.split("."))
            return defined_in(
                file.with_suffix(".py") if file.with_suffix(".py").is_file() else file / "__init__.py", name
            )
    return None


def arguments(function):
    given = function.args
    every = [*given.posonlyargs, *given.args, *given.kwonlyargs, *filter(None, (given.vararg, given.kwarg))]
    return [one.arg for one in every if one.arg not in ("self", "cls")]


def section(docstring, title):
    """Return the lines of a section, or None."""
    lines = inspect.cleandoc(docstring).split("\n")
    if f"{title}:" not in lines:
        return None
    rest = lines[lines.index(f"{title}:") + 1 :]
    end = next((place for place, line in enumerate(rest) if line and not line.startswith(" ")), len(rest))
    return "\n".join(rest[:end])


def lacks(function, what):
    """Yield what a function's docstring does not say."""
    text = ast.get_docstring(function) or ""
    said = section(text, "Args")
    for argument in arguments(function):
        if not any(f"    {stars}{argument}: " in (said or "") for stars in ("", "*", "**")):
            yield f"{what} does not say what {argument} is"
    returns = function.returns is not None and ast.unparse(function.returns) not in ("None", "NoReturn")
    decorated = {ast.unparse(one).rpartition(".")[2] for one in function.decorator_list}
    says = text.startswith(("Return ", "Yield ", "Map ")) or section(text, "Returns") is not None
    if returns and not decorated & {"property", "cached_property"} and not says and "contextmanager" not in decorated:
        yield f"{what} does not say what it returns"


PUBLIC = documented()


@pytest.mark.parametrize("name", PUBLIC)
def test_a_docstring_says_what_goes_in_and_out(name):
    node = documents(name)
    if isinstance(node, ast.FunctionDef):
        assert list(lacks(node, name)) == []
        return
    assert ast.get_docstring(node)
    methods = [one for one in node.body if isinstance(one, ast.FunctionDef)]
    missing = []
    for method in methods:
        if method.name == "__init__":
            said = section(ast.get_docstring(node), "Args") or ""
            missing += [f"{name} does not say what {one} is" for one in arguments(method) if f"    {one}: " not in said]
        elif method.name[0] != "_" and method.name != "forward" and not method.name.startswith("on_"):
            missing += lacks(method, f"{name}.{method.name}")
    assert missing == []


@pytest.mark.parametrize("name", [name for name in PUBLIC if name not in NOT_SHOWN])
def test_a_docstring_shows_a_value(name):
    assert ">>>" in (ast.get_docstring(documents(name)) or "")


def test_the_comment_behind_a_field_describes_it():
    assert comment("    batch: int  # sequences per pass") == "sequences per pass"
    assert comment('    sign: str = "#"  # of a heading') == "of a heading"
    assert comment('    sign: str = "#"') == ""
    assert comment("    one: Any = two(  # the value goes on") == ""
    assert comment("    found: list[int] = []  # noqa: RUF012") == ""
