"""What is published: one version everywhere, an sdist with the tests, and workflows that agree."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest

from repository import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def project() -> Any:
    return tomllib.loads(text("pyproject.toml"))["project"]


def test_the_citation_is_of_this_version(project: Any) -> None:
    assert re.findall(r"^version: (.*)$", text("CITATION.cff"), re.MULTILINE) == [project["version"]]
    assert f"license: {project['license']}" in text("CITATION.cff")


def test_each_python_that_is_claimed_is_tested(project: Any) -> None:
    """CI may test more: a new Python is claimed after its first green run."""
    claimed = set(re.findall(r"Python :: (3[.][0-9]+)", " ".join(project["classifiers"])))
    (tested,) = re.findall(r"python: \[(.*)\]", text(".github/workflows/ci.yml"))
    assert claimed <= set(re.findall(r"3[.][0-9]+", tested))
    assert min(claimed, key=lambda version: int(version[2:])) == project["requires-python"].removeprefix(">=")


def test_the_owner_is_filled_in_at_one_place() -> None:
    named = [name for name in ("README.md", "CITATION.cff", "mkdocs.yml", "SECURITY.md") if "OWNER" in text(name)]
    assert named == []
    assert "! grep -n OWNER pyproject.toml" in text(".github/workflows/release.yml")


def test_sympy_is_needed_by_tests_alone(project: Any) -> None:
    needing = [
        name for name, needed in project["optional-dependencies"].items() if any(n.startswith("sympy") for n in needed)
    ]
    assert needing == ["test-fast"]
    assert not any("sympy" in needed for needed in project["dependencies"])


def test_the_sdist_holds_what_its_tests_read() -> None:
    manifest = text("MANIFEST.in")
    for line in text("tests/fast.txt").split():
        assert (ROOT / line.partition("::")[0]).exists(), line
    for name in (
        "Makefile",
        "constraints.txt",
        "CHANGELOG.md",
        "CITATION.cff",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "mkdocs.yml",
    ):
        assert name in manifest
    for folder in ("attacks", "benchmarks", "docs", "examples", "tests"):
        assert f"graft {folder}" in manifest


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_may_write_nothing_by_default(path: Any) -> None:
    assert "\npermissions:\n  contents: read\n" in path.read_text(encoding="utf-8")
