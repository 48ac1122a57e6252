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
from dataclasses import replace
from importlib.util import find_spec

import pytest
import torch
from torch import nn

import tallystick
from repository import ROOT
from tallystick import BadInput
from tallystick.cli.main import main
from tallystick.live import captured_warnings, probe, survive
from tallystick.live.operations import OPERATIONS, Operation, Workspace, peft, surgery
from tallystick.live.probe import READ, SCORED
from tallystick.live.ranks import RanksFailed
from tallystick.live.shrink_config import cut
from tallystick.live.subjects import GPT2, subject_of
from tallystick.live.survive import Survival, Survived
from tallystick.report.survival import show_survival
from tallystick.report.tables.table import console

BY_NAME = {operation.name: operation for operation in OPERATIONS}
PAIR = (GPT2.embedding, GPT2.head)


def run(*functions):
    return survive.survive(operations=[operation for operation in OPERATIONS if operation.run in functions])


def lines(answer, style):
    out = io.StringIO()
    show_survival(answer, console(out), style=style)
    return [line.rstrip() for line in out.getvalue().splitlines()]


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


# -- the probe ------------------------------------------------------------------------------------


def test_the_rows_of_the_probe_are_the_two_uses_and_their_sum():
    model, ids = GPT2.build(), torch.tensor([READ])
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
    assert probe.gradients(GPT2.build(), *PAIR) == ("one tensor", "")


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
    assert probe.gradients(broken(GPT2.build()), *PAIR)[0] == found


def test_gradients_of_before_are_not_counted():
    model = GPT2.build()
    assert probe.gradients(model, *PAIR)[0] == "one tensor"
    assert probe.gradients(detached_head(model), *PAIR)[0] == "one tensor, not all of it"


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


# -- a source of the user's -----------------------------------------------------------------------


def source(name, *chosen, **settings):
    answer = survive.survive(name, settings, operations=[BY_NAME[operation] for operation in chosen])
    return {row.operation: row for row in answer.rows}


@pytest.mark.usefixtures("preloaded")
def test_a_small_model_of_a_preset_keeps_the_flags_and_ties_of_its_type():
    model = subject_of("qwen2.5-0.5b", {}).build()
    assert type(model).__name__ == "Qwen2ForCausalLM"
    assert model.model.layers[0].self_attn.q_proj.bias is not None  # as Qwen2 has it, and Llama has not
    assert (len(model.model.layers), model.lm_head.weight is model.model.embed_tokens.weight) == (2, True)
    assert sum(parameter.numel() for parameter in model.parameters()) < 100_000


def test_a_small_model_has_each_kind_of_layer(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gemma3_text"}))
    kinds = subject_of(str(tmp_path), {}).build().config.layer_types
    assert {kind: kinds.count(kind) for kind in kinds} == {"sliding_attention": 10, "full_attention": 2}


def test_the_operations_find_head_and_embedding_of_another_architecture(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gpt_neox", "tie_word_embeddings": True}))
    subject = subject_of(str(tmp_path), {})
    assert (subject.embedding, subject.head) == ("gpt_neox.embed_in.weight", "lm_head.weight")
    rows = source(
        str(tmp_path),
        "model.head = nn.Linear(...)",
        "LoRA, modules_to_save=[head], ensure_weight_tying",
        "quantize_, int8 weights, head left out",
    )
    found = {name: (row.after, row.gradients, row.mended) for name, row in rows.items()}
    assert found == {
        "model.head = nn.Linear(...)": ("untied", "two tensors", "tied"),
        "LoRA, modules_to_save=[head], ensure_weight_tying": ("tied", "one tensor", ""),
        "quantize_, int8 weights, head left out": ("tied", "one tensor", ""),
    }


@pytest.mark.usefixtures("preloaded")
def test_a_factory_of_the_users_is_run_in_one_process_and_in_two(capfd):
    rows = source(
        "rank_tasks:own",
        "init_empty_weights",
        "save_pretrained, from_pretrained",
        "DistributedDataParallel",
        "fully_shard (FSDP2): blocks, root",
        tokens=20,
    )
    ours = rows["init_empty_weights"]
    assert (ours.after, ours.remedy, ours.mended) == ("aliased", "tie them with tallystick.retie(model)", "tied")
    theirs = rows["save_pretrained, from_pretrained"]
    assert (theirs.outcome, theirs.said) == ("not applicable", "Own is not a transformers model")
    both = rows["DistributedDataParallel"]
    assert (both.outcome, both.parameters, both.gradients) == ("kept", 0, "one tensor")
    assert rows["fully_shard (FSDP2): blocks, root"].said == "Own has no nn.ModuleList of blocks"
    assert capfd.readouterr() == ("", "")


def test_what_is_named_instead_is_no_remedy_where_it_loses_the_tie_too():
    losing = "LoRA, modules_to_save=[head]"
    rows = source(
        "rank_tasks:own", losing, f"{losing}, ensure_weight_tying"
    )  # which knows models of transformers alone
    assert (rows[losing].outcome, rows[losing].remedy) == ("lost", "")


def test_a_model_that_takes_more_than_token_ids_is_looked_at_without_gradients():
    answer = survive.survive("rank_tasks:two_inputs", operations=[BY_NAME["copy.deepcopy of the parts"]])
    (row,) = answer.rows
    assert (row.after, row.gradients, row.mended, row.mended_gradients) == ("copied", "", "tied", "")
    (note,) = answer.to_dict()["notes"]
    assert "missing 1 required positional argument: 'mask'" in note
    assert f"note: {note}" in lines(answer, "table")


@pytest.mark.usefixtures("preloaded")
@pytest.mark.parametrize(
    ("name", "settings", "said"),
    [
        (
            "llama-3-8b",
            {},
            "llama-3-8b has no head tied to its token embedding, so there is no tie to test",
        ),
        ("rank_tasks:own", {"tied": False}, "rank_tasks:own has no head tied to its token embedding, so"),
        ("rank_tasks:own", {"tokens": 13}, "rank_tasks:own has a vocabulary of 13, too few to distinguish"),
        (
            "rank_tasks:own",
            {"tokens": 3_000_000},
            "builds 24,000,072 parameters, more than the 20,000,000 allowed",
        ),
        (
            "rank_tasks:ONE",
            {},
            "rank_tasks:ONE returns the same module each time: name a function that builds a new one",
        ),
        ("gpt3", {}, "no preset or file 'gpt3'; nearest: gpt2"),
        ("gpt2", {"n_lyer": 2}, "gpt2 has no key 'n_lyer' to set; nearest: n_layer"),
        ("palm-8b", {}, "palm-8b: neither tallystick nor transformers"),
        ("model.safetensors", {}, "model.safetensors has weights but no config: name the folder with its config.json"),
        ("./nowhere/config.json", {}, "nowhere/config.json: No such file or directory"),
    ],
)
def test_a_source_of_which_nothing_can_be_shown_is_refused_in_one_line(name, settings, said):
    with pytest.raises(BadInput) as error:
        subject_of(name, settings)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_sizes_are_cut_and_everything_else_stays():
    layer = {"hidden_size": 4096, "head_dim": 128}
    config = {
        "text_config": {"n_layer": 3, "kinds": ["a", "b", "b"], "rates": [0.5, 0.5, 0.5], "num_attention_heads": 32},
        "num_hidden_layers": 40,
        "per_layer_config": {1: layer, 7: layer},
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "pad_token_id": 11,
        "use_cache": True,
        "attention_bias": True,
        "rope_theta": 1e6,
        "hidden_act": "silu",
    }
    assert cut(config) == {
        "text_config": {"n_layer": 3, "kinds": ["a", "b", "b"], "rates": [0.5, 0.5, 0.5], "num_attention_heads": 4},
        "num_hidden_layers": 2,
        "per_layer_config": {1: {"hidden_size": 32, "head_dim": 8}},
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "pad_token_id": 3,
        "use_cache": False,
        "attention_bias": True,
        "rope_theta": 1e6,
        "hidden_act": "silu",
    }


def test_what_cannot_be_made_small_is_said(tmp_path):
    config = {"model_type": "mamba2", "tie_word_embeddings": True, "expand": 3, "num_heads": 192}  # of 64 are 3 × 4096
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(
        BadInput, match=r"cannot build a small Mamba2ForCausalLM from its config .*: name a package\.module:factory"
    ):
        subject_of(str(tmp_path), {})


def test_the_page_of_a_source_names_it():
    answer = Survival({}, (), "my:model", ("something else.",))
    page = lines(answer, "markdown")
    assert any("on a small my:model." in line for line in page)
    assert "note: something else." in page
    assert not any("GPT-2" in line for line in page)


def test_settings_without_a_source_are_refused(capsys):
    assert main(["survive", "--set", "n_layer=2"]) == 2
    assert capsys.readouterr().err == "tallystick: --set overrides values of a source: name one\n"


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
