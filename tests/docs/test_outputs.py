"""README and the pages show what commands print and Python gives: `make outputs` writes it."""

from __future__ import annotations

import re
import tomllib

import pytest

import outputs
import terminal
from repository import ROOT

PAGES = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for path in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"))
}
SHOWN = [(name, run) for name, page in PAGES.items() for run in outputs.runs(page)]
ONCE = {run.command: run for _, run in SHOWN}


@pytest.fixture(scope="module")
def folder():
    with outputs.examples() as folder:
        yield folder


@pytest.mark.parametrize("command", ONCE)
def test_a_command_prints_what_is_shown(command, folder):
    """On each page that shows it. The README's answers from configs come from processes of their
    own, as a user runs them.
    """
    apart = "gpt2 163M" in command or "llama-3-8b --device" in command
    again = outputs.run_again(command, folder, apart=apart and command in PAGES["README.md"])
    assert {name: run for name, run in SHOWN if run.command == command and run != again} == {}


@pytest.mark.parametrize("name", [name for name, page in PAGES.items() if outputs.PYTHON.search(page)])
def test_the_python_gives_what_is_shown(name, folder):
    python = "".join(f"```pycon\n{block}```\n" for block in outputs.PYTHON.findall(PAGES[name]))
    assert outputs.rewritten(python, folder) == python


def test_outputs_are_written_in_place(tmp_path):
    page = """\
```console
$ tallystick count gpt2 | head -1
an old line
and another
$ tallystick count no-such-preset
```
text
```pycon
>>> one = [
...     1,
... ]
>>> len(one)
2
>>> print("a", "", "b", sep="\\n")
a
```
"""
    now = outputs.rewritten(page, tmp_path)
    assert "$ tallystick count gpt2 | head -1\ngpt2: 124,439,808 parameters (124.4M)\n$ tallystick" in now
    assert re.search(r"\ntallystick: .*no-such-preset.*\n\$ echo \$\?\n2\n```\ntext\n", now)
    assert ">>> one = [\n...     1,\n... ]\n>>> len(one)\n1\n" in now
    assert now.endswith("a\n<BLANKLINE>\nb\n```\n")
    assert outputs.rewritten(now, tmp_path) == now
    assert [(run.command, run.code) for run in outputs.runs(now)] == [
        ("tallystick count gpt2 | head -1", 0),
        ("tallystick count no-such-preset", 2),
    ]


def test_an_error_in_a_pages_python_is_not_written_down(tmp_path):
    with pytest.raises(ZeroDivisionError) as raised:
        outputs.rewritten("```pycon\n>>> 1 / 0\n1\n```\n", tmp_path)
    assert raised.value.__notes__ == [">>> 1 / 0\n"]


@pytest.mark.parametrize("name", terminal.PICTURES)
def test_the_picture_of_a_terminal_shows_what_is_printed(name):
    """Its text: where the letters stand is up to the version of rich."""

    def letters(picture):
        return re.findall(r"<text[^>]*>([^<]*)</text>", picture)

    stored = (ROOT / "docs" / name).read_text(encoding="utf-8")
    assert letters(stored) == letters(terminal.picture(terminal.PICTURES[name]))
    assert "124,439,808" in "".join(letters(stored))
    assert re.findall(r"url\((?!#)|@import|<image|<script", stored) == []


README = PAGES["README.md"]


def test_the_readme_is_short():
    assert len(README.splitlines()) <= 150


def test_links_of_the_readme_are_absolute_and_lead_somewhere():
    """As PyPI shows them, and to files and pages that are there."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    repository, site = project["urls"]["Repository"], project["urls"]["Documentation"]
    raw = repository.replace("https://github.com/", "https://raw.githubusercontent.com/")
    links = re.findall(r'(?:\]\(|src="|srcset=")([^)"]+)', README)
    assert len(links) > 20
    for link in links:
        if link.startswith((f"{repository}/blob/main/", f"{raw}/main/")):
            assert (ROOT / link.partition("/main/")[2]).is_file(), link
        elif link.startswith(actions := f"{repository}/actions/"):
            assert (ROOT / ".github" / link.removeprefix(actions).removesuffix("/badge.svg")).is_file(), link
        elif link.startswith(site):
            page = link.removeprefix(site).replace(".html", ".md") or "index.md"
            assert (ROOT / "docs" / page).is_file(), link
        else:
            assert link.startswith(("https://img.shields.io/", f"https://pypi.org/project/{project['name']}/")), link


def test_the_account_that_publishes_is_filled_in_from_pyproject():
    assert outputs.with_addresses(README) == README
    other = README.replace("//github.com/OWNER/", "//github.com/some-body/").replace(
        "//OWNER.github.io/", "//x.github.io/"
    )
    assert outputs.with_addresses(other) == README
    assert (
        outputs.with_addresses("https://github.com/EleutherAI/cookbook/") == "https://github.com/EleutherAI/cookbook/"
    )


def test_as_many_types_are_native_as_the_page_of_the_architectures_says():
    said = re.search(r"has (\d+) model types\. \*\*(\d+)\*\* are native", PAGES["docs/architectures.md"])
    assert said
    assert f"{said[2]} of the {said[1]} causal language model types of transformers are native" in README
    assert f"each of the {said[1]} model types that transformers takes for causal language models: {said[2]} are" in (
        " ".join(PAGES["docs/accuracy.md"].split())
    )


def test_the_figures_of_others_are_those_that_were_measured():
    """The README's rows of memory are rows of the page that `make bench` writes, tallystick's own
    figure among them.
    """
    measured = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in PAGES["docs/memory-peers.md"].splitlines()
    ]
    rows = re.findall(r"^\| (?:weights|KV cache|kept)[^|]*(.*)\|$", README, re.MULTILINE)
    assert len(rows) == 3
    for row in rows:
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        (found,) = [line for line in measured if cells[0] in line]
        assert {cell for cell in cells if cell != "—"} <= set(found)
