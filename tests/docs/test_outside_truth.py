"""Figures that others published: ours are what they were, and the page says why some differ."""

from __future__ import annotations

import re

import pytest

import outside_figures
from outside_figures import KINDS, UNITS, Figure, cells, engine_figures, figures, value_of
from outside_truth import page
from repository import ROOT

AGAIN = "run `make outputs`, and read in the difference which figures moved"


def test_no_figure_moved():
    moved = [
        f"{one.place} {one.model}: {one.ratio} of theirs, now {one.now}" for one in figures() if one.ratio != one.now
    ]
    assert not moved, AGAIN


def test_the_page_is_what_would_be_written():
    assert (ROOT / "docs" / "outside-truth.md").read_text(encoding="utf-8") == page(), AGAIN


def test_a_figure_that_differs_says_why():
    apart = [one for one in figures() if not one.agrees and abs(one.error) > 0.005]
    assert [f"{one.place} {one.model}: {one.error:+.2%}" for one in apart if not one.why] == []


@pytest.mark.parametrize("path", cells(), ids=lambda path: path.stem)
def test_each_row_is_of_a_kind_with_a_source_and_in_a_unit(path):
    for line, row in enumerate(cells()[path], 2):
        where = f"{path.name}:{line}"
        assert row["kind"] in KINDS, where
        assert row["unit"] in UNITS, where
        assert re.fullmatch(r"\d+(\.\d+)?", row["theirs"]), where
        assert re.search(r"https://\S+|stored file \d+", row["source"]), where
        assert "|" not in "".join(row.values()), where  # it would end a cell of the page


def test_no_figure_stands_twice():
    rows = [(one.source, one.model, one.kind, one.command, one.theirs, one.unit) for one in figures()]
    assert [row for row in rows if rows.count(row) > 1] == []


def test_the_figures_are_many_and_of_many_projects():
    both = [*figures(), *engine_figures()]
    assert len(both) >= 300
    assert len({one.project for one in both}) >= 15
    assert {one.kind for one in both} == {*KINDS}


@pytest.mark.parametrize(
    ("theirs", "ours", "agrees"),
    [
        ("14.99", 14.986, True),
        ("14.99", 14.98, False),
        ("124439808", 124439808, True),
        ("7", 6.5, True),
        ("7", 6.4, False),
    ],
)
def test_ours_agrees_if_it_rounds_to_theirs(theirs, ours, agrees):
    one = Figure("", "count", "", "", "", "", theirs, "params", ours, "", "")
    assert one.agrees == agrees


def test_a_figure_that_moves_is_found(monkeypatch):
    moved = figures()[0]._replace(ours=figures()[0].ours * 1.001)
    monkeypatch.setitem(globals(), "figures", lambda: (moved,))
    with pytest.raises(AssertionError, match="make outputs"):
        test_no_figure_moved()


def test_a_value_is_an_expression_over_a_commands_json():
    assert value_of("count gpt2", "totals.by_name - totals.unique") == 50257 * 768
    assert outside_figures.answer("count gpt2") is outside_figures.answer("count gpt2")
