"""Ties of models and files of which nothing says what is meant: what was lost, what is not known,
what is no pair.
"""

import copy
import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import distributed, nn
from torch.nn.utils import prune

from checkpoint_models import noted
from tallystick import assert_tied, count, ties
from tallystick.cli.main import main
from tallystick.live import NotTied
from tiny_model import Tiny

WTE, HEAD = "transformer.wte.weight", "lm_head.weight"
SIZE = 50 * 8


def deepcopied(model):
    model.lm_head = copy.deepcopy(model.lm_head)


def assigned(model):
    model.load_state_dict({name: one.clone() for name, one in model.state_dict().items()}, assign=True)


def cloned(model):
    model.lm_head.weight = nn.Parameter(model.transformer.wte.weight.detach().clone())


def in_sequential(model):
    weight = model.lm_head.weight.detach().clone()
    model.lm_head = nn.Sequential(nn.Linear(8, 50, bias=False))
    model.lm_head[0].weight = nn.Parameter(weight)


def in_bfloat16(model):
    model.lm_head.weight = nn.Parameter(model.lm_head.weight.detach().bfloat16())


def in_float64(model):
    model.transformer.wte.weight = nn.Parameter(model.lm_head.weight.detach().double())


def replaced(model):
    model.lm_head = nn.Linear(8, 50, bias=False)


def trained_apart(model):
    cloned(model)
    with torch.no_grad():
        model.lm_head.weight += 0.1


def emptied(model):
    model.to("meta").to_empty(device="cpu")
    nn.init.normal_(model.lm_head.weight)
    nn.init.zeros_(model.transformer.wte.weight)


def embedding_resized(model):
    model.transformer.wte = nn.Embedding(58, 8)


def head_padded(model):
    model.lm_head = nn.Linear(8, 64, bias=False)


EQUAL = [deepcopied, assigned, cloned, in_sequential, in_bfloat16, in_float64]
DIFFERENT = [replaced, trained_apart, emptied, embedding_resized, head_padded]


def broken(operation):
    model = Tiny()
    operation(model)
    return model


# -- live models ----------------------------------------------------------------------------------


@pytest.mark.parametrize("operation", EQUAL)
def test_an_equal_head_in_memory_of_its_own_is_a_lost_tie(operation):
    answer = ties(broken(operation))
    assert (answer.verdict, [problem.code for problem in answer.problems]) == ("lost", ["lost-tie"])
    (group,) = answer.groups
    assert (group.expected, group.parameters) == (None, SIZE)
    assert group.relation == ("untied" if operation in (in_bfloat16, in_float64) else "copied")


@pytest.mark.parametrize("operation", DIFFERENT)
def test_a_head_that_differs_is_unknown_where_nothing_says_what_is_meant(operation):
    answer = ties(broken(operation))
    assert (answer.verdict, answer.problems) == ("unknown", ())
    assert [group.relation for group in answer.groups] == ["untied"]


def test_a_tie_that_holds_is_consistent_and_one_half_made_a_contradiction():
    assert ties(Tiny()).verdict == "consistent"
    model = Tiny()
    model.lm_head.weight = nn.Parameter(model.transformer.wte.weight.data)
    answer = ties(model)
    assert (answer.verdict, [problem.code for problem in answer.problems]) == ("contradiction", ["aliased-parameters"])


def test_a_model_without_a_pair_says_nothing_of_what_was_meant(capsys):
    answer = ties(nn.Linear(3, 4))
    assert (answer.verdict, answer.groups) == ("unknown", ())
    assert answer.notes == ("no tied weights, and nothing says whether any were expected",)
    assert main(["ties", "llama-2-7b"]) == 0  # here the config says it
    assert "no tied weights, and none expected" in capsys.readouterr().out


@pytest.mark.parametrize(("operation", "code"), [(deepcopied, 1), (replaced, 0), (embedding_resized, 0), (None, 0)])
def test_exit_codes(operation, code, tmp_path, monkeypatch, capsys):
    (tmp_path / "unsaid.py").write_text(
        "from tiny_model import Tiny\nimport test_ties_unsaid\n"
        f"def build():\n    return test_ties_unsaid.broken(test_ties_unsaid.{operation.__name__})\n"
        if operation
        else "from tiny_model import Tiny as build\n"
    )
    monkeypatch.syspath_prepend(Path(__file__).parent)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(__import__("sys").modules, "unsaid", raising=False)
    assert main(["ties", "unsaid:build", "--format", "json"]) == code
    assert json.loads(capsys.readouterr().out)["verdict"] == (
        "consistent" if operation is None else "lost" if code else "unknown"
    )


@pytest.mark.parametrize("operation", [embedding_resized, head_padded])
def test_a_resized_side_fails_the_assertion_with_both_shapes(operation):
    model = broken(operation)
    rows = [len(model.transformer.wte.weight), len(model.lm_head.weight)]
    with pytest.raises(NotTied) as error:
        assert_tied(model)
    assert all(f"({row}, 8)" in str(error.value) for row in rows)
    assert "\n" not in str(error.value)
    assert all(noted(count(model), f"({row}, 8)") for row in rows)


def test_a_head_for_classes_is_no_resized_head():
    model = Tiny()
    model.lm_head = nn.Linear(8, 3)
    assert (ties(model).groups, count(model).notes) == ((), ())


@pytest.mark.parametrize("operation", [in_bfloat16, in_float64])
def test_what_a_cast_alone_makes_differ_is_said(operation):
    model = broken(operation)
    (group,) = ties(model).groups
    narrow = "bfloat16" if operation is in_bfloat16 else "float32"
    assert group.why == f"the same values, rounded to {narrow}"
    with pytest.raises(NotTied, match=f"untied .the same values, rounded to {narrow}"):
        assert_tied(model)


# -- buffers --------------------------------------------------------------------------------------


def test_a_pruning_mask_is_no_head():
    model = Tiny()
    prune.l1_unstructured(model.lm_head, "weight", amount=0.3)
    assert not noted(count(model), "is not tied to")
    answer = ties(model)
    assert (answer.verdict, [group.relation for group in answer.groups]) == ("consistent", ["tied"])
    assert_tied(model)


def test_equal_masks_in_a_file_are_no_ties(tmp_path):
    mask = torch.tril(torch.ones(6, 6)).view(1, 1, 6, 6)
    tensors = {f"transformer.h.{layer}.attn.bias": mask.clone() for layer in range(3)}
    tensors |= {f"blocks.{layer}.att.mask": mask[0, 0].clone() for layer in range(3)}
    save_file({WTE: torch.randn(20, 8), HEAD: torch.randn(20, 8), **tensors}, tmp_path / "a.safetensors")
    assert [set(group.names) for group in ties(tmp_path / "a.safetensors").groups] == [{WTE, HEAD}]


# -- files ----------------------------------------------------------------------------------------


def stored(path, head):
    torch.save({WTE: torch.randn(20, 8, generator=torch.Generator().manual_seed(0)), HEAD: head}, path)
    return path


def test_equal_matrices_of_a_file_without_a_config(tmp_path, capsys):
    embedding = torch.randn(20, 8, generator=torch.Generator().manual_seed(0))
    path = stored(tmp_path / "a.pt", embedding.clone())
    answer = ties(path)
    assert [(set(group.names), group.relation) for group in answer.groups] == [({WTE, HEAD}, "copied")]
    assert (answer.verdict, [problem.code for problem in answer.problems]) == ("lost", ["lost-tie"])
    assert "640 duplicate bytes" in answer.problems[0].message
    assert main(["ties", str(path)]) == 1
    assert f"{path}: lost" in capsys.readouterr().out
    assert ties(stored(tmp_path / "b.pt", embedding + 1)).verdict == "unknown"
    assert ties(stored(tmp_path / "c.pt", torch.randn(24, 8))).verdict == "unknown"
    assert ties(stored(tmp_path / "d.pt", embedding.bfloat16())).groups[0].why == "the dtypes are float32 and bfloat16"


def test_a_file_without_a_head_leaves_it_open(tmp_path):
    torch.save({WTE: torch.randn(20, 8)}, tmp_path / "a.pt")
    answer = ties(tmp_path / "a.pt")
    assert answer.verdict == "unknown"
    assert "no LM head is stored" in answer.notes[0]


@pytest.mark.filterwarnings("ignore")
def test_the_pair_of_a_distributed_checkpoint_is_listed(tmp_path):
    from torch.distributed import checkpoint

    store = distributed.FileStore(str(tmp_path / "store"), 1)
    distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    try:
        checkpoint.save(Tiny(tie=False).state_dict(), checkpoint_id=tmp_path / "dcp")
    finally:
        distributed.destroy_process_group()
    answer = ties(tmp_path / "dcp")
    assert [(set(group.names), group.relation) for group in answer.groups] == [({WTE, HEAD}, "unknown")]
    assert answer.verdict == "unknown"
