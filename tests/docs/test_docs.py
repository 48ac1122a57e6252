"""The pages of docs/ show what the commands print; the site is built of them without a warning, and
asks nobody for anything.
"""

from __future__ import annotations

import html
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

import tallystick
from doc_examples import assert_printed, assert_python, commands
from repository import ROOT
from tallystick.cli.parser import build_parser

PAGES = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in (ROOT / "docs").rglob("*.md")}
CONSOLE = [(name, *shown) for name, page in PAGES.items() for shown in commands(page)]


@pytest.mark.parametrize(
    ("page", "command", "shown"), CONSOLE, ids=[f"{name}: {command}" for name, command, _ in CONSOLE]
)
def test_a_command_prints_what_is_shown(page, command, shown):
    assert_printed(command, shown, ROOT / "examples", apart=False)  # the README's run in processes, one of each kind


def test_the_python_of_the_pages():
    for name, page in PAGES.items():
        if "```pycon" in page:
            assert_python(page, name)


def test_the_page_of_the_architectures_is_what_would_be_written(monkeypatch):
    """And every type of transformers is native, or stands there with why it is not."""
    monkeypatch.syspath_prepend(ROOT / "docs" / "site")
    from architectures import architectures_page

    assert PAGES["docs/architectures.md"] == architectures_page()


ONCE = pytest.mark.xdist_group("site")  # what needs the site runs in one worker


def is_fresh(folder):
    """Whether a site is younger than all that it is built of."""
    files = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "mkdocs.yml")]
    for part in ("docs", "src", "examples"):
        files += [path for path in (ROOT / part).rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    built = folder / "index.html"
    return built.exists() and max(path.stat().st_mtime for path in files) < built.stat().st_mtime


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site that SITE names, where it is fresh; else one that is built as `make docs` builds
    it.
    """
    made = ROOT / os.environ.get("SITE", "site")
    if "SITE" in os.environ and is_fresh(made):
        return made
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (built.returncode, built.stderr) == (0, "")
    return folder


class Loaded(HTMLParser):
    """What a browser loads by itself as it shows a page."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        named = dict(attributes)
        if tag == "link" or "src" in named:
            self.found.append(named.get("src") or named.get("href") or "")


@ONCE
def test_no_page_loads_anything_from_elsewhere(site):
    pages = list(site.rglob("*.html"))
    loaded = {place for page in pages for place in Loaded(page).found}
    assert any(place.endswith(".css") for place in loaded)
    assert [place for place in loaded if re.match(r"[a-z]+:|//", place)] == []
    styles = "".join(path.read_text(encoding="utf-8") for path in site.rglob("*.css"))
    assert re.findall(r"@import|url\([\"']?(?:https?:)?//[^)]*", styles) == []


@ONCE
def test_the_page_of_the_commands_has_every_option(site):
    page = (site / "commands.html").read_text(encoding="utf-8")
    commands = build_parser()._subparsers._group_actions[0].choices
    assert set(re.findall(r'<h2 id="([\w-]+)">', page)) == set(commands)
    for name, command in commands.items():
        section = page.split(f'<h2 id="{name}">')[1].split("<h2")[0]
        options = {option for action in command._actions for option in action.option_strings} - {"-h", "--help"}
        assert {option for option in options if f"<code>{option}" not in section} == set()


@ONCE
def test_the_page_of_the_python_has_every_public_name(site):
    page = (site / "python.html").read_text(encoding="utf-8")
    assert {name for name in tallystick.__all__ if f'id="tallystick.{name}"' not in page} == set()
    assert "<blockquote>" not in page  # which is what an example without a fence becomes


@ONCE
def test_the_page_of_architectures_shows_a_whole_file(site):
    page = html.unescape(re.sub(r"<[^>]+>", "", (site / "architecture.html").read_text(encoding="utf-8")))
    assert (ROOT / "src/tallystick/architectures/granite.py").read_text(encoding="utf-8") in page


def test_the_files_that_the_map_names_are_there():
    named = set(re.findall(r"`((?:[a-z_]+/)+(?:[a-z_]+\.py)?)`", PAGES["docs/design.md"])) - {"folder/"}
    package = ROOT / "src" / "tallystick"
    assert {name for name in named if not (package / name).exists() and not (ROOT / name).exists()} == set()
    assert len(named) > 25


def test_the_tests_that_the_page_of_architectures_names_are_there():
    named = set(re.findall(r"`(?:tests/(?:\w+/)*)?(test_\w+(?:\.py)?)`", PAGES["docs/architecture.md"]))
    files = list((ROOT / "tests").rglob("test_*.py"))
    there = {path.name for path in files}
    there.update(
        name for path in files for name in re.findall(r"^def (\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    )
    assert named - there == set()
    assert len(named) > 5
