"""The notebooks of docs/walkthroughs begin with a question, and show what running them shows."""

from __future__ import annotations

import nbformat
import pytest

from notebooks import executed, shown
from repository import ROOT
from rotating import some_by_commit

NOTEBOOKS = sorted((ROOT / "docs" / "walkthroughs").glob("*.ipynb"))


@pytest.mark.usefixtures("preloaded")
@pytest.mark.parametrize("name", some_by_commit([path.name for path in NOTEBOOKS], 2))
def test_a_notebook_shows_what_running_it_shows(name):
    path = ROOT / "docs" / "walkthroughs" / name
    stored = shown(nbformat.read(path, as_version=4))
    assert any(stored)
    assert shown(executed(path)) == stored


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_begins_with_the_question_as_one_would_ask_it(path):
    title, _, question, *_ = nbformat.read(path, as_version=4).cells[0].source.split("\n")
    assert title.startswith("# ")
    assert title.endswith("?")
    assert question.startswith("> ")
