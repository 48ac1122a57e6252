"""The page of operations is what they do now; the probe and the reports tell what is so."""

import functools
import io
import json
import logging
import os
import random
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from torch import nn

import tallystick
from tallystick import BadInput
from tallystick.live import operations, survive
from tallystick.live.operations import OPERATIONS, Desk, Operation, tied_model
from tallystick.live.survive import EMBEDDING, HEAD, READ, SCORED, Survival, Survived
from tallystick.report.survival import show_survival
from tallystick.report.table import console

ROOT = Path(__file__).parent.parent
BY_NAME = {operation.name: operation for operation in OPERATIONS}
LIBRARIES = sorted({operation.library for operation in OPERATIONS})


def run(*functions):
    return survive.survive([operation for operation in OPERATIONS if operation.run in functions])


def lines(answer, style):
    out = io.StringIO()
    show_survival(answer, console(out), style=style)
    return [line.rstrip() for line in out.getvalue().splitlines()]


@functools.cache
def everything():
    """What `tallystick survive` prints, in a process of its own: what was imported and said before changes nothing."""
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
        "model.lm_head = nn.Sequential(nn.Linear(...))",
        "set_input_embeddings",
        "init_empty_weights",
    ],
)
def test_the_code_is_that_of_ties(name, tmp_path):
    (row,) = survive.survive([BY_NAME[name]]).rows
    model = BY_NAME[name].run(tied_model(), Desk(tmp_path, None))
    assert [problem.code for problem in tallystick.ties(model).problems] == [row.code]


# -- the probe ------------------------------------------------------------------------------------


def test_the_rows_of_the_probe_are_the_two_uses_and_their_sum():
    model, ids = tied_model(), torch.tensor([READ])
    weight = model.transformer.wte.weight

    def gradient(logits):
        (found,) = torch.autograd.grad(logits[..., list(SCORED)].sum(), weight)
        return found

    both = gradient(model(ids).logits)
    embedding = gradient(model.transformer(ids).last_hidden_state @ weight.detach().T)
    head = gradient(model.transformer(ids).last_hidden_state.detach() @ weight.T)
    assert set(embedding.abs().sum(1).nonzero().flatten().tolist()) == set(READ)
    assert set(head.abs().sum(1).nonzero().flatten().tolist()) == set(SCORED)
    assert torch.allclose(both, embedding + head)
    assert survive._gradients(tied_model(), (EMBEDDING, HEAD)) == ("one tensor", "")


def detached_head(model):
    model.lm_head.forward = lambda hidden: hidden @ model.lm_head.weight.detach().T
    return model


def detached_body(model):
    model.transformer.register_forward_hook(lambda *args: type(args[2])(args[2].last_hidden_state.detach()))
    return model


def apart(model):
    model.lm_head.weight = nn.Parameter(model.lm_head.weight.detach().clone())
    return model


@pytest.mark.parametrize(
    ("broken", "found"),
    [
        (detached_head, "one tensor, not all of it"),
        (detached_body, "one tensor, not all of it"),
        (apart, "two tensors"),
        (lambda model: detached_head(apart(model)), "embedding alone"),
        (lambda model: detached_body(apart(model)), "head alone"),
        (lambda model: model.requires_grad_(False), "frozen"),
        (lambda model: model.to("meta"), "no values"),
    ],
)
def test_a_use_whose_gradient_does_not_arrive_is_told(broken, found):
    assert survive._gradients(broken(tied_model()), (EMBEDDING, HEAD))[0] == found


def test_gradients_of_before_are_not_counted():
    model = tied_model()
    assert survive._gradients(model, (EMBEDDING, HEAD))[0] == "one tensor"
    assert survive._gradients(detached_head(model), (EMBEDDING, HEAD))[0] == "one tensor, not all of it"


# -- what is reported -----------------------------------------------------------------------------


def lost(model, desk):
    """Take the head away."""
    model.lm_head = nn.Identity()
    return model


def talking(model, desk):
    """Talk of ties and of other things."""
    logging.getLogger("peft").warning("untying is a word; the weights are no longer tied. More")
    logging.getLogger("peft").warning("something else")
    sys.stdout.write("noise")
    sys.stderr.write("noise")
    random.random()
    torch.rand(3)
    (desk.folder / "file").write_text(str(desk.folder))
    return model


def test_a_head_that_is_gone_is_lost():
    (row,) = survive.survive([Operation("gone", "torch", lost)]).rows
    assert (row.outcome, row.after, row.gradients) == ("lost", "gone", "")


def test_nothing_is_left_behind(capfd, monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    handlers = {name: list(logging.getLogger(name).handlers) for name in ("", "transformers", "torch")}
    state = torch.get_rng_state()
    (row,) = survive.survive([Operation("talking", "torch", talking)]).rows
    assert row.said == "untying is a word; the weights are no longer tied"
    assert torch.equal(torch.get_rng_state(), state)
    assert {name: list(logging.getLogger(name).handlers) for name in handlers} == handlers
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr() == ("", "")


def test_two_runs_are_the_same(monkeypatch):
    from transformers.utils.logging import get_logger

    drawn = []

    def drawing(model, desk):
        """Draw, and say something that is said once."""
        drawn.append(torch.rand(1).item())
        get_logger("transformers").warning_once("no longer tied, as is said once")
        return model

    monkeypatch.setattr(logging.root, "handlers", [])
    rows = [survive.survive([Operation("drawing", "torch", drawing)]).rows[0] for _ in range(2)]
    assert logging.root.handlers == []
    assert [row.said for row in rows] == ["no longer tied, as is said once"] * 2
    assert drawn[0] == drawn[1]


@pytest.mark.parametrize("library", ["peft", "torchao"])
def test_an_absent_library_is_said(library, monkeypatch):
    monkeypatch.setattr(survive, "find_spec", lambda name: None if name == library else find_spec(name))
    answer = survive.survive([operation for operation in OPERATIONS if operation.library == library])
    assert {row.outcome for row in answer.rows} == {"not installed"}
    for style in ("table", "markdown"):
        assert sum("not installed" in line for line in lines(answer, style)) == len(answer.rows)
    assert answer.to_dict()["rows"][0]["after"] is None


@pytest.mark.parametrize("library", ["torch", "transformers"])
def test_without_a_model_it_says_what_to_install(library, monkeypatch):
    monkeypatch.setattr(survive, "find_spec", lambda name: None if name == library else find_spec(name))
    with pytest.raises(BadInput, match=rf"need {library}: pip install 'tallystick\[survive\]'"):
        survive.survive([])


def test_a_change_to_the_head_alone_that_reached_the_embedding_is_told():
    answer = run(operations.pruned, operations.pruned_for_good, operations.lora_on_head_merged)
    assert [(row.after, row.values) for row in answer.rows] == [("tied", "same"), ("tied", "other"), ("tied", "other")]


def test_long_messages_and_bars_fit_a_table():
    row = Survived("a|b", "torch", "Do.", "refused", before="tied", said=survive._first_sentence("x" * 999))
    (line,) = [line for line in lines(Survival({}, (row,)), "markdown") if "xxx" in line]
    assert line.startswith(r"| a\|b ")
    assert len(row.said) == survive.MOST_SAID


def test_importing_live_imports_no_torch():
    code = "import sys, tallystick.live.survive; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
