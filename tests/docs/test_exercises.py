"""The lessons ask before they answer, and the folded answers are right."""

from __future__ import annotations

import ast
import re

import nbformat
import pytest

import tallystick
from repository import ROOT
from tallystick.course import judge

FOLDED = re.compile(r"<details><summary>(.+?)</summary>\n\n(.*?)\n\n</details>", re.DOTALL)
CODE = re.compile(r"```python\n(.*?)```", re.DOTALL)
LESSONS = ("budget", "derivation", "replaced_head", "from_scratch")


def cells(name):
    return nbformat.read(ROOT / "docs" / "walkthroughs" / f"{name}.ipynb", as_version=4).cells


def folded(name):
    """The text of the folded answers, and what their code defines."""
    texts = [found[2] for cell in cells(name) if cell.cell_type == "markdown" for found in FOLDED.finditer(cell.source)]
    defined = {}
    for code in (code[1] for text in texts for code in CODE.finditer(text)):
        exec(code, defined)
    return texts, defined


@pytest.mark.parametrize("name", LESSONS)
def test_a_lesson_asks_and_folds_its_answers(name):
    texts, _ = folded(name)
    marks = sum(cell.source.count("<details>") for cell in cells(name))
    assert len(texts) == marks >= 3
    assert sum(cell.source.count("?") for cell in cells(name) if cell.cell_type == "markdown") >= len(texts)


def test_the_answers_of_the_budget_are_right():
    _, defined = folded("budget")
    calls = [
        node
        for cell in cells("budget")
        if cell.cell_type == "code"
        for node in ast.walk(ast.parse(cell.source))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "judge"
    ]
    assert len(calls) == 7
    for call in calls:
        assert eval(ast.unparse(call), {**defined, "judge": judge}).right, ast.unparse(call)
    assert defined["guesses"] == {"tied": 1_280, "tied, with a bias": 1_536, "not tied": 2_560}
    assert defined["num_params_for_palm"](256_000, 18_432, 118, 48, 256) == 540_354_281_472


def test_the_figures_in_the_answers_of_the_budget():
    texts = "\n".join(folded("budget")[0])
    for figure in (
        "1,280",
        "181",
        "1,461",
        "10,240",
        "10,320",
        "11,971",
        "1,080,708,562,944",
        "1,080.7 GB",
        "1,006.5 GiB",
    ):
        assert figure in texts
    assert tallystick.memory("palm-540b", dtype="float16").to_dict()["weights_bytes"] == 1_080_708_562_944


def test_the_block_of_the_derivation_is_right():
    assert folded("derivation")[1]["block"](768) == 7_087_872
    assert folded("derivation")[1]["block"](1_600) == 12 * 1_600**2 + 13 * 1_600


def test_the_derivation_is_the_one_that_was_pasted():
    (chat,) = [cell.source for cell in cells("derivation") if cell.source.startswith("CHAT")]
    assert chat.startswith('CHAT = r"""GPT_CONFIG_124M = {')
    assert "This value rounds to approximately 124 million parameters, matching the expected model size." in chat
    assert chat.count(r"\[") == 12
