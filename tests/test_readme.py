"""The README shows what the commands print, and its Python gives what it says."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from shown import assert_printed, assert_python, commands

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
CONSOLE = commands(README)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The examples, and what one of them writes."""
    folder = tmp_path_factory.mktemp("readme") / "examples"
    shutil.copytree(ROOT / "examples", folder)
    subprocess.run([sys.executable, "recital.py"], cwd=folder, check=True)
    return folder


@pytest.mark.parametrize(("command", "shown"), CONSOLE, ids=[command for command, _ in CONSOLE])
def test_a_command_prints_what_is_shown(command, shown, folder):
    assert_printed(command, shown, folder)


def test_the_python_of_the_readme():
    assert_python(README, "README.md")


def test_every_native_type_is_listed():
    from tallystick import architectures

    ours = {"palm", "nanogpt", "book_gpt", "book_llama", *architectures.TEACHING}
    listed = re.search(r"Native types:\n(.*?); besides", README, re.DOTALL)
    assert listed
    assert set(re.split(r",\s+", listed[1])) == set(architectures.known()) - ours
