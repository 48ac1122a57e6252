"""Answers in Python: a line as `repr`, a table as `str`, HTML in a notebook."""

import re
import subprocess
import sys
from html.parser import HTMLParser

import pytest

import tallystick
from all_answers import ANSWERS
from tallystick.cli.main import main
from tallystick.core.display import Displayed

LINES = {
    "Ledger": "<Ledger of gpt2: 124,439,808 parameters>",
    "Formula": "<Formula of gpt2: 124,439,808 = vocab_size·n_embd + n_positions·n_embd + n_layer·(12·n_embd…>",
    "Comparison": "<Comparison of gpt2 and llama-2-7b: +6,613,975,808 parameters, 10 causes>",
    "Reconciliation": "<Reconciliation of gpt2 with 163M: with the tied head counted twice>",
    "Check": "<Check of the text against gpt2: 1 of 2 equations wrong, total off by -960>",
    "Memory": "<Memory of gpt2, training: 16.8 GB at start of backward>",
    "Sweep": "<Sweep of gpt2, training: 3 sequence lengths, 2.489 GB to 3.400 GB>",
    "Fit": "<Fit of llama-3-70b on h100, inference: does not fit, 143.4 of 84.5 GB>",
    "FitAll": "<FitAll of gpt2, inference: fits 30 devices of those known>",
    "FitEngine": "<FitEngine of llama-3.1-8b by vllm: starts on 2 devices of 2>",
    "Serve": "<Serve of llama-3.1-8b by vllm on h100: 443,664 tokens of KV cache>",
    "Compute": "<Compute of gpt2, 1 × 1,024 tokens: 291.6 GFLOP forward, 874.9 GFLOP in training>",
    "Ties": "<Ties of gpt2: consistent, 1 group, 0 problems>",
    "Survival": "<Survival of gpt2: 1 of 1 operation kept the tie>",
}


@pytest.mark.parametrize("kind", ANSWERS)
def test_repr_is_one_line(kind):
    assert repr(ANSWERS[kind]()) == LINES[kind]


def test_every_answer_is_here():
    def derived(one):
        return {one.__name__} | {name for further in one.__subclasses__() for name in derived(further)}

    for kind in ANSWERS.values():
        kind()
    assert derived(Displayed) - {"Displayed"} == ANSWERS.keys()


COMMANDS = {
    "Ledger": "count gpt2",
    "Formula": "formula gpt2",
    "Comparison": "compare gpt2 llama-2-7b",
    "Reconciliation": "reconcile gpt2 163M",
    "Memory": "memory gpt2 --mode training --batch 8 --device h100",
    "Sweep": "memory gpt2 --mode training --sequence 64,256,1024",
    "Fit": "fit llama-3-70b --device h100",
    "Serve": "serve llama-3.1-8b --device h100 --max-model-len 8k",
    "Compute": "compute gpt2 --device h100 --tokens 1B --mfu 0.4",
    "Ties": "ties gpt2",
}
NARROWER = ("Memory", "Sweep")  # whose tables are wider than 100 columns


@pytest.mark.parametrize("kind", COMMANDS)
def test_str_is_what_the_command_prints(kind, capsys):
    main(COMMANDS[kind].split())
    printed, ours = (re.findall(r"[\w.,·²]+", text) for text in (capsys.readouterr().out, str(ANSWERS[kind]())))
    if kind in NARROWER:  # a pipe has no width
        assert sorted(set(ours) - set(printed)) == []
    else:
        assert ours == printed


@pytest.mark.parametrize("kind", ANSWERS)
def test_str_is_plain_and_at_most_100_columns_wide(kind, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "40")
    lines = str(ANSWERS[kind]()).split("\n")
    assert max(map(len, lines)) <= 100
    assert all(line == line.rstrip() and "\x1b" not in line for line in lines)
    assert len(lines) >= 3


class Tags(HTMLParser):
    """The text of each cell, row by row, and the tags that were opened."""

    def __init__(self, page):
        super().__init__()
        self.open, self.seen, self.rows = [], set(), []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.seen.add(tag)
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append(("", dict(attributes).get("style", "")))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th"):
            text, style = self.rows[-1][-1]
            self.rows[-1][-1] = (text + data, style)


@pytest.mark.parametrize("kind", ANSWERS)
def test_html_is_well_formed_and_needs_no_style_sheet(kind):
    page = Tags(ANSWERS[kind]()._repr_html_())
    assert page.open == []
    assert "table" in page.seen
    assert not page.seen & {"script", "style", "link"}


TOTALS = {
    "Ledger": ["total", "124,439,808", "100.0%", ""],
    "Formula": ["total", "", "", "", "124,439,808"],
    "Comparison": ["total", "+6,613,975,808"],
    "Reconciliation": ["rounds to 163M", "163,037,184", ""],
    "Check": ["gpt2", "124,439,808", ""],
    "Memory": ["peak: start of backward", "16,750,394,964", "16.750", "15.600"],
    "Compute": ["total", "291.6 GFLOP", "874.9 GFLOP", "100.0%", ""],
}


@pytest.mark.parametrize("kind", TOTALS)
def test_html_has_a_total(kind):
    rows = [[text for text, _ in row] for row in Tags(ANSWERS[kind]()._repr_html_()).rows]
    assert TOTALS[kind] in rows


def test_columns_are_aligned_and_apart():
    for row in Tags(tallystick.count("gpt2")._repr_html_()).rows:
        for place, (text, style) in enumerate(row):
            bar = place == 3
            assert bar or f"text-align:{'left' if place == 0 else 'right'}" in style
            assert bar or "padding:2px 20px 2px 0" in style, text


def test_the_tie_says_that_it_is_counted_once():
    assert "lm_head.weight (38,597,376 shared, counted once)" in tallystick.count("gpt2")._repr_html_()


def test_a_source_cannot_break_the_line():
    ledger = tallystick.count({"model_type": "gpt2"})
    evil = type(ledger)(ledger.rolled, source="a\nb\x1b[2J", kind="config")
    assert repr(evil) == "<Ledger of a\\nb\\x1b[2J: 124,439,808 parameters>"
    assert str(evil).startswith("a\\nb\\x1b[2J")


def test_repr_draws_nothing():
    code = (
        "import sys, tallystick\nassert not {'rich', 'torch'} & set(sys.modules)\n"
        "repr(tallystick.memory('gpt2'))\nassert not {'rich', 'torch'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
