"""The README shows what the commands print, and its Python gives what it says."""

import doctest
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
CONSOLE = re.findall(r"```console\n\$ tallystick ([^\n]+)\n(.*?)```", README, re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The examples, and what one of them writes."""
    folder = tmp_path_factory.mktemp("readme") / "examples"
    shutil.copytree(ROOT / "examples", folder)
    subprocess.run([sys.executable, "recital.py"], cwd=folder, check=True)
    return folder


@pytest.mark.parametrize(("command", "shown"), CONSOLE, ids=[command for command, _ in CONSOLE])
def test_a_command_prints_what_is_shown(command, shown, folder):
    done = subprocess.run(
        [sys.executable, "-m", "tallystick", *shlex.split(command)],
        cwd=folder,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    negative = (": contradiction\n", "equations is wrong", " does not fit ")
    failed = any(words in shown for words in negative)
    assert done.returncode == int(failed), done.stderr
    assert [line.rstrip() for line in done.stdout.splitlines()] == [line.rstrip() for line in shown.splitlines()]


def test_the_python_of_the_readme():
    blocks = "\n".join(re.findall(r"```pycon\n(.*?)```", README, re.DOTALL))
    test = doctest.DocTestParser().get_doctest(blocks, {}, "README.md", "README.md", 0)
    assert test.examples
    assert doctest.DocTestRunner().run(test).failed == 0


def test_every_native_type_is_listed():
    from tallystick import architectures

    ours = {"palm", "nanogpt", "book_gpt", "book_llama", *architectures.TEACHING}
    listed = re.search(r"Native types:\n(.*?); besides", README, re.DOTALL)
    assert listed
    assert set(re.split(r",\s+", listed[1])) == set(architectures.known()) - ours
