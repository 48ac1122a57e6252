"""The README shows what the commands print, and its Python gives what it says."""

import re
import shutil
import subprocess
import sys

import pytest

from doc_examples import assert_printed, assert_python, commands, first_of_each
from repository import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
CONSOLE = commands(README)
APART = first_of_each(command for command, _ in CONSOLE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The examples, and what one of them writes."""
    folder = tmp_path_factory.mktemp("readme") / "examples"
    shutil.copytree(ROOT / "examples", folder)
    subprocess.run([sys.executable, "recital.py"], cwd=folder, check=True)
    return folder


@pytest.mark.parametrize(("command", "shown"), CONSOLE, ids=[command for command, _ in CONSOLE])
def test_a_command_prints_what_is_shown(command, shown, folder):
    assert_printed(command, shown, folder, apart=command in APART)


def test_the_python_of_the_readme():
    assert_python(README, "README.md")


def test_as_many_types_are_native_as_the_page_of_the_architectures_says():
    page = (ROOT / "docs" / "architectures.md").read_text(encoding="utf-8")
    said = re.search(r"maps to a class: (\d+)\. \*\*(\d+)\*\* are native", page)
    assert said
    assert (
        f"each of the {said[1]} model types that transformers takes for causal language models: {said[2]} are native"
        in README
    )
