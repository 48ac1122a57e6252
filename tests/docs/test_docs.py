"""The site is built of the pages of docs/ without a warning, and asks nobody for anything."""

from __future__ import annotations

import html
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

import tallystick
from architectures import FAMILIES, architectures_page
from commands import commands
from repository import ROOT
from tallystick import architectures

PAGES = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in (ROOT / "docs").rglob("*.md")}


def test_the_page_of_the_architectures_is_what_would_be_written():
    """And every type of transformers is native, or stands there with why it is not."""
    assert PAGES["docs/architectures.md"] == architectures_page()


ONCE = pytest.mark.xdist_group("site")  # what needs the site runs in one worker


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
def test_a_commands_page_has_every_option(site):
    index = (site / "commands" / "index.html").read_text(encoding="utf-8")
    for name, command in commands().items():
        assert f'href="{name}.html"' in index
        page = (site / "commands" / f"{name}.html").read_text(encoding="utf-8")
        options = {option for action in command._actions for option in action.option_strings} - {"-h", "--help"}
        assert {option for option in options if f"<code>{option}" not in page} == set()


NEVER_RUN = {  # serve a page, or take minutes; their pages link to what they wrote
    "explore": "explore/count.png",
    "train": "training.md",
    "experiment": "tying.md",
    "survive": "survival.md",
}


@pytest.mark.parametrize("name", commands())
def test_a_commands_page_begins_with_a_question_and_shows_an_output(name):
    page = PAGES.get(f"docs/commands/{name}.md", "")
    assert page, f"write docs/commands/{name}.md: the question, and a console block; `make outputs` runs it"
    assert re.match(rf"# {name}\n\n[A-Z][^\n]*[?.:]\n", page)
    assert (f"../{NEVER_RUN[name]}" if name in NEVER_RUN else f"```console\n$ tallystick {name}") in page


@ONCE
def test_the_pages_of_the_python_have_every_public_name(site):
    pages = [page.read_text(encoding="utf-8") for page in (site / "python").glob("*.html")]
    assert {
        name for name in tallystick.__all__ if not any(f'id="tallystick.{name}"' in page for page in pages)
    } == set()
    assert not any("<blockquote>" in page for page in pages)  # which is what an example without a fence becomes


@ONCE
def test_every_native_type_is_on_the_page_of_its_family_with_its_options(site):
    pages = "".join((site / "architectures" / f"{name}.html").read_text(encoding="utf-8") for name in FAMILIES)
    sections = dict(re.findall(r'<h2 id="[^"]*">([\w-]+)<.*?<pre><code>(.*?)</code>', pages, re.DOTALL))
    known = {name: found.keys for name in architectures.known() if (found := architectures.find(name))}
    assert sections.keys() == known.keys()
    options = {name: [line.partition("=")[0] for line in text.splitlines()] for name, text in sections.items()}
    assert {name for name, keys in known.items() if options[name] != [*keys]} == set()
    index = (site / "architectures.html").read_text(encoding="utf-8")
    assert all(f'.html#{name}"><code>{name}</code>' in index for name in known)


@ONCE
def test_lines_of_tables_scroll_and_sentences_are_folded(site):
    page = (site / "commands" / "count.html").read_text(encoding="utf-8")
    rows = html.unescape(re.sub(r"<(?!span class=.row)[^>]+>", "", page))
    assert re.search(r'<span class="row">.* token_embedding {7}38,597,376', rows)
    assert re.search(r"^gpt2: 124,439,808 parameters", rows, re.MULTILINE)


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
