"""The page of operations is what they do now; reports tell what is so."""

import functools
import json
import logging
import os
import random
import subprocess
import sys
import tempfile
from dataclasses import replace
from importlib.util import find_spec

import pytest
import torch
from torch import nn

import tallystick
from repository import ROOT
from survival_lines import BY_NAME, lines
from tallystick import BadInput
from tallystick.live import captured_warnings, survive
from tallystick.live.operations import OPERATIONS, Operation, Workspace, peft, surgery
from tallystick.live.ranks import RanksFailed
from tallystick.live.subjects import GPT2
from tallystick.live.survive import Survival, Survived


def run(*functions):
    return survive.survive(operations=[operation for operation in OPERATIONS if operation.run in functions])


@functools.cache
def everything():
    """What `tallystick survive` prints, in a process of its own: what was imported and said before
    changes nothing.
    """
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("TRANSFORMERS_", "TORCH_"))
    }
    done = subprocess.run(
        [sys.executable, "-m", "tallystick", "survive", "--format", "json"],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert (done.returncode, done.stderr) == (0, "")
    answer = json.loads(done.stdout)
    rows = [{key: "" if value is None else value for key, value in row.items()} for row in answer["rows"]]
    for row, given in zip(rows, answer["rows"], strict=True):
        row["parameters"] = given["parameters"]
    return Survival(answer["versions"], tuple(Survived(**row) for row in rows))


@pytest.mark.usefixtures("preloaded")
def test_everything_is_as_the_page_says_and_each_remedy_ties_again():
    answer = everything()
    page = (ROOT / "docs" / "survival.md").read_text(encoding="utf-8")
    assert lines(answer, "markdown") == page.splitlines(), "see what changed, then: make survival"

    assert [row.operation for row in answer.rows] == list(BY_NAME)
    for row in answer.rows:
        assert row.before == "tied"
        assert row.outcome in ("kept", "lost", "refused"), row.operation
        assert bool(row.code) == (row.outcome == "lost")
        assert not row.code or (ROOT / "docs" / "problems" / f"{row.code}.md").exists()
        if row.remedy:
            assert (row.mended, row.operation) == ("tied", row.operation)
            assert row.mended_gradients in ("one tensor", "no values")
        if row.outcome == "kept":
            assert (row.after, row.gradients in ("one tensor", "frozen")) == ("tied", True)
        if row.outcome == "lost":
            assert row.remedy
            assert row.gradients not in ("one tensor", "")
    assert not [row for row in answer.rows if "/tmp" in str(row) or str(ROOT) in str(row)]


def test_names_are_told_once_and_what_is_named_instead_keeps_the_tie():
    assert len(BY_NAME) == len(OPERATIONS)
    for operation in OPERATIONS:
        assert operation.what.endswith(".")
        assert "\n" not in operation.what
        assert operation.instead in ("", *BY_NAME)


@pytest.mark.parametrize(
    "name",
    [
        "copy.deepcopy of the parts",
        "load_state_dict(state, assign=True)",
        "load_state_dict(cloned, assign=True)",
        'model.to("meta")',
        "model.head = nn.Sequential(nn.Linear(...))",
        "set_input_embeddings",
        "init_empty_weights",
    ],
)
def test_the_code_is_that_of_ties(name, tmp_path):
    (row,) = survive.survive(operations=[BY_NAME[name]]).rows
    model = BY_NAME[name].run(GPT2.build(), Workspace(tmp_path, None, GPT2))
    assert [problem.code for problem in tallystick.ties(model).problems] == [row.code]


# -- in two processes -----------------------------------------------------------------------------


class Answering:
    """Ranks that have ended."""

    def __init__(self, *rows):
        self.rows = rows

    def results(self):
        if not self.rows:
            raise RanksFailed("rank 1 exited with code 1: why")
        return [[survive._to_json(row)] for row in self.rows]


def agreed(*rows):
    (row,) = survive._agreed([Operation("shard", "torch", lost)], Answering(*rows))
    return row


def test_a_row_is_what_all_ranks_saw():
    row = Survived("shard", "torch", "Take the head away.", "kept", "tied", "tied", 0, "same", "one tensor")
    assert agreed(row, row) == row


def test_ranks_that_saw_different_things_have_failed():
    row = Survived("shard", "torch", "Take the head away.", "kept", "tied", "tied", 0, "same", "one tensor")
    other = replace(row, gradients="two tensors")
    assert (agreed(row, other).outcome, agreed(row, other).after) == ("failed", "")
    assert agreed(row, other).said == "the ranks disagree on gradients: one tensor on rank 0, two tensors on rank 1"


def test_a_rank_that_did_not_end_well_says_why_and_claims_nothing():
    assert agreed() == Survived(
        "shard", "torch", "Take the head away.", "failed", said="rank 1 exited with code 1: why"
    )


# -- what is reported -----------------------------------------------------------------------------


def lost(model, workspace):
    """Take the head away."""
    model.lm_head = nn.Identity()
    return model


def talking(model, workspace):
    """Talk of ties and of other things."""
    logging.getLogger("peft").warning("untying is a word; the weights are no longer tied. More")
    logging.getLogger("peft").warning("something else")
    sys.stdout.write("noise")
    sys.stderr.write("noise")
    random.random()
    torch.rand(3)
    (workspace.folder / "file").write_text(str(workspace.folder))
    return model


def test_a_head_that_is_gone_is_lost():
    (row,) = survive.survive(operations=[Operation("gone", "torch", lost)]).rows
    assert (row.outcome, row.after, row.gradients) == ("lost", "gone", "")


def test_nothing_is_left_behind(capfd, monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    handlers = {name: list(logging.getLogger(name).handlers) for name in ("", "transformers", "torch")}
    state = torch.get_rng_state()
    (row,) = survive.survive(operations=[Operation("talking", "torch", talking)]).rows
    assert row.said == "untying is a word; the weights are no longer tied"
    assert torch.equal(torch.get_rng_state(), state)
    assert {name: list(logging.getLogger(name).handlers) for name in handlers} == handlers
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr() == ("", "")


def test_two_runs_are_the_same(monkeypatch):
    from transformers.utils.logging import get_logger

    drawn = []

    def drawing(model, workspace):
        """Draw, and say something that is said once."""
        drawn.append(torch.rand(1).item())
        get_logger("transformers").warning_once("no longer tied, as is said once")
        return model

    monkeypatch.setattr(logging.root, "handlers", [])
    rows = [survive.survive(operations=[Operation("drawing", "torch", drawing)]).rows[0] for _ in range(2)]
    assert logging.root.handlers == []
    assert [row.said for row in rows] == ["no longer tied, as is said once"] * 2
    assert drawn[0] == drawn[1]


@pytest.mark.parametrize("library", ["peft", "torchao"])
def test_an_absent_library_is_said(library, monkeypatch):
    monkeypatch.setattr(survive, "find_spec", lambda name: None if name == library else find_spec(name))
    answer = survive.survive(operations=[operation for operation in OPERATIONS if operation.library == library])
    assert {row.outcome for row in answer.rows} == {"not installed"}
    for style in ("table", "markdown"):
        assert sum("not installed" in line for line in lines(answer, style)) == len(answer.rows)
    assert answer.to_dict()["rows"][0]["after"] is None


@pytest.mark.parametrize("library", ["torch", "transformers"])
def test_without_a_model_it_says_what_to_install(library, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)  # as where it is not installed
    with pytest.raises(BadInput, match=r"survive needs \w+: pip install 'tallystick\[survive\]'"):
        survive.survive(operations=[])


def test_a_change_to_the_head_alone_that_reached_the_embedding_is_told():
    answer = run(surgery.pruned, surgery.pruned_for_good, peft.lora_on_head_merged)
    assert [(row.after, row.values) for row in answer.rows] == [("tied", "same"), ("tied", "other"), ("tied", "other")]


def test_long_messages_and_bars_fit_a_table():
    row = Survived("a|b", "torch", "Do.", "refused", before="tied", said=captured_warnings.first_sentence("x" * 999))
    (line,) = [line for line in lines(Survival({}, (row,)), "markdown") if "xxx" in line]
    assert line.startswith(r"| a\|b ")
    assert len(row.said) == captured_warnings.MOST_SAID


def test_importing_live_imports_no_torch():
    code = "import sys, tallystick.live.survive; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
