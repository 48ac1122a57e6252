"""The tests themselves: none imports another, and what they share stands in tests/support."""

import ast
from pathlib import Path

TESTS = Path(__file__).parent


def imported(path: Path) -> set[str]:
    """The modules that a file imports, anywhere in it."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    named = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return named | {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}


def test_nothing_imports_from_a_test_file():
    files = [path for path in TESTS.rglob("*.py") if path != Path(__file__)]
    assert len(files) > 150
    assert {
        (path.name, module)
        for path in files
        for module in imported(path)
        if module.rpartition(".")[2].startswith("test_")
    } == set()
