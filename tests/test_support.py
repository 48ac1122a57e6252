"""The tests themselves: none imports another, and what they share stands in tests/support, where
benchmarks find it too.
"""

import ast
import importlib.util
from pathlib import Path

import pytest

import mutation_rooms
from repository import ROOT
from syntax import nodes

TESTS = Path(__file__).parent
BENCHMARKS = ROOT / "benchmarks"
# Of the extra `bench`, and nanoGPT's own module: not installed with the tests.
PEERS = {"calflops", "hf_mem", "llm_analysis", "model", "torchinfo"}


def imported(path: Path) -> set[str]:
    """The modules that a file imports, anywhere in it."""
    found = nodes(ast.parse(path.read_text(encoding="utf-8")))
    named = {alias.name for node in found if isinstance(node, ast.Import) for alias in node.names}
    return named | {node.module for node in found if isinstance(node, ast.ImportFrom) and node.module}


def test_nothing_imports_from_a_test_file():
    files = [path for path in TESTS.rglob("*.py") if path != Path(__file__)]
    assert len(files) > 150
    assert {
        (path.name, module)
        for path in files
        for module in imported(path)
        if module.rpartition(".")[2].startswith("test_")
    } == set()


def test_the_rooms_of_mutations_name_files_that_are_there():
    """A file of tests that moves would leave a room with nothing to run on a break."""
    named = {name for room in mutation_rooms.ROOMS.values() for name in f"{room.first} {room.wider}".split()}
    assert len(named) > 100
    assert {name for name in named if not list(TESTS.glob(f"{Path(name).parent}/test_{Path(name).name}.py"))} == set()


@pytest.mark.parametrize("path", sorted(BENCHMARKS.glob("*.py")), ids=lambda path: path.stem)
def test_what_a_benchmark_imports_is_there(path: Path):
    """No test runs them, so a helper that moves would leave them behind."""
    text = path.read_text(encoding="utf-8")
    own = (BENCHMARKS, TESTS / "support")
    if '"tests"' in text:
        assert '"tests" / "support"' in text
    lacking = {
        name
        for name in {module.partition(".")[0] for module in imported(path)} - PEERS
        if not any((folder / f"{name}.py").exists() for folder in own) and not importlib.util.find_spec(name)
    }
    assert not lacking
