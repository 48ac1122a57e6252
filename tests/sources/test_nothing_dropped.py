"""Every tensor of a state dict is counted or named, wherever a library keeps it. The truth is the
model before.
"""

import collections
import warnings

import pytest
import torch
from torch import distributed, nn
from torch.ao.nn import quantized
from torch.distributed.fsdp import FullyShardedDataParallel

from checkpoint_models import noted
from tallystick import assert_tied, check_optimizer, count, ties
from tiny_model import Tiny

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.cell, self.out = nn.LSTM(8, 8, num_layers=2), nn.GRUCell(8, 8), nn.Linear(8, 4)


def numel(model):
    return sum(parameter.numel() for parameter in model.parameters())


# -- packed parameters ----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.qint8, torch.float16])
@pytest.mark.parametrize("build", [lambda: Tiny(tie=False), Recurrent])
def test_dynamic_quantisation_loses_no_parameter(build, dtype):
    model = build()
    kinds = {nn.Linear, nn.LSTM, nn.GRUCell}
    assert count(torch.ao.quantization.quantize_dynamic(model, kinds, dtype=dtype)).total == numel(model)


def test_packed_weights_keep_their_roles_and_bytes():
    model = Tiny(tie=False)
    before = count(model)
    ledger = count(torch.ao.quantization.quantize_dynamic(model, {nn.Linear}))
    assert ledger.by("role") == before.by("role")
    weights = [part.weight.numel() for part in model.modules() if isinstance(part, nn.Linear)]
    # A byte for each weight, four for all else.
    assert ledger.totals["bytes"] == sum(weights) + 4 * (numel(model) - sum(weights))
    assert ledger.by("dtype")["qint8"] == sum(weights)
    assert ledger.totals["buffers"] == 2 * len(weights)  # a scale and a zero point of each
    assert {entry.called for entry in ledger.entries if not entry.buffer} == {
        name for name, _ in model.named_parameters()
    }


def test_static_modules_and_embeddings():
    model = nn.ModuleDict({
        "embedding": quantized.Embedding(64, 8), "bag": quantized.EmbeddingBag(30, 4), "linear": quantized.Linear(8, 16),
        "conv": quantized.Conv2d(3, 4, 3), "twice": nn.Sequential(*[quantized.Linear(4, 4)] * 2),
    })  # fmt: skip
    ledger = count(model)
    assert ledger.total == 64 * 8 + 30 * 4 + (8 * 16 + 16) + (4 * 3 * 9 + 4) + (16 + 4)
    assert ledger.totals["by_name"] == ledger.total + 20
    # Each row of a quantised embedding has a scale and a zero point, floats of four bytes.
    assert ledger.tensors["embedding._packed_params._packed_weight"].bytes == 64 * 8 + 64 * 2 * 4


def test_converted_after_calibration():
    model = nn.Sequential(torch.ao.quantization.QuantStub(), nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8)).eval()
    model.qconfig = torch.ao.quantization.get_default_qconfig("x86")
    ready = torch.ao.quantization.prepare(model)
    ready(torch.randn(4, 8))
    assert count(torch.ao.quantization.convert(ready)).total == numel(model)


def test_the_file_of_a_quantised_model_counts_the_same(tmp_path):
    model = Tiny(tie=False)
    done = torch.ao.quantization.quantize_dynamic(model, {nn.Linear})
    torch.save(done.state_dict(), tmp_path / "a.pt")
    stored, live = count(tmp_path / "a.pt"), count(done)
    assert stored.total == live.total == numel(model)
    assert [entry.name for entry in stored.entries] == [entry.name for entry in live.entries]


def test_a_quantised_head_is_compared_with_nothing():
    answer = ties(torch.ao.quantization.quantize_dynamic(Tiny(), {nn.Linear}))
    (group,) = answer.groups
    assert group.names == ("transformer.wte.weight", "lm_head._packed_params._packed_params.0")
    assert group.relation == "unknown"
    assert "quantised" in group.why


def test_a_quantised_head_is_no_longer_what_the_config_ties():
    from transformers import LlamaConfig, LlamaForCausalLM

    sizes = {"vocab_size": 64, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1}
    config = LlamaConfig(**sizes, num_attention_heads=4, tie_word_embeddings=True)
    model = torch.ao.quantization.quantize_dynamic(LlamaForCausalLM(config), {nn.Linear})
    ledger = count(model)
    assert ledger.total == count(config).total + 64 * 16
    assert noted(
        ledger, "is no longer tied to model.embed_tokens.weight, but the config says it should be (+1,024). Fix"
    )
    (problem,) = ties(model).problems
    assert problem.code == "untied-head"
    assert "exclude its module from quantisation" in problem.remedy
    assert not noted(ledger, "retie")


# -- other state ----------------------------------------------------------------------------------


class WithExtraState(nn.Linear):
    def get_extra_state(self):
        return {"scale": torch.ones(5), "steps": 3}


class SavedOtherwise(nn.Linear):
    """It saves its matrix in two halves, which are views of it."""

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        destination[prefix + "upper"], destination[prefix + "lower"] = self.weight.data.chunk(2)


class Failing(nn.Linear):
    def get_extra_state(self):
        raise RuntimeError("not yet")


def test_extra_state_is_named():
    ledger = count(nn.Sequential(WithExtraState(3, 4)))
    assert ledger.total == 16
    assert noted(
        ledger,
        "5 elements of the state dict are neither parameters nor buffers, so not counted: 0._extra_state.scale",
    )


def test_a_parameter_saved_under_other_names_is_counted_once():
    ledger = count(nn.Sequential(SavedOtherwise(4, 6)))
    assert (ledger.total, ledger.notes) == (4 * 6 + 6, ())


def test_state_that_cannot_be_had_leaves_the_count_as_it_is():
    assert count(nn.Sequential(Failing(3, 4))).total == 16


# -- flat parameters ------------------------------------------------------------------------------


@pytest.fixture
def one_rank(tmp_path):
    store = distributed.FileStore(str(tmp_path / "store"), 1)
    distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    yield
    distributed.destroy_process_group()


def flat(module):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that one process shards nothing
        return FullyShardedDataParallel(module, device_id=torch.device("cpu"), use_orig_params=False)


@pytest.mark.parametrize("nested", [False, True])
def test_flat_parameters_are_taken_apart(one_rank, nested):
    plain, model = count(Tiny()), Tiny()
    if nested:
        model.transformer.h[0] = flat(model.transformer.h[0])
    model = flat(model)
    ledger = count(model)
    assert ledger.total == plain.total == numel(model)
    assert ledger.by("role") == plain.by("role")
    assert sorted(entry.name for entry in ledger.entries) == sorted(entry.name for entry in plain.entries)
    assert [tie.names for tie in ledger.ties] == [tie.names for tie in plain.ties]
    assert_tied(model)
    assert check_optimizer(model, torch.optim.SGD(model.parameters(), lr=0.1)) == []


def test_the_shard_of_a_flat_parameter_is_counted_whole():
    """As FSDP leaves a rank of four: the first quarter of the elements, and what the whole was."""
    shapes = (torch.Size((50, 8)), torch.Size((8,)), torch.Size((50, 8)))
    shard = nn.Parameter(torch.zeros(-(-(50 * 8 * 2 + 8) // 4)))
    shard._fqns = ("wte.weight", "norm.weight", "lm_head.weight")
    shard._shapes, shard._numels = shapes, tuple(shape.numel() for shape in shapes)
    Info = collections.namedtuple("Info", "param_name module module_name")
    model = nn.Module()
    shard._param_infos = tuple(Info("weight", nn.Module(), name) for name in ("wte", "norm", "lm_head"))
    model._flat_param = shard
    ledger = count(model)
    assert ledger.total == 50 * 8 * 2 + 8
    assert ledger.by("role") == {"token_embedding": 400, "norm": 8, "head": 400}
    (group,) = ties(model).groups
    assert (group.relation, "this process has only a shard" in group.why) == ("unknown", True)


@pytest.mark.parametrize("original", [False, True])
def test_each_of_four_ranks_counts_the_whole(original):
    from torch.testing._internal.distributed.fake_pg import FakeStore

    plain = count(Tiny())
    distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=4)
    try:
        model = FullyShardedDataParallel(Tiny(), use_orig_params=original, device_id=torch.device("cpu"))
        ledger, answer = count(model), ties(model)
    finally:
        distributed.destroy_process_group()
    assert numel(model) < plain.total / 3  # what this rank holds
    assert (ledger.total, ledger.by("role")) == (plain.total, plain.by("role"))
    assert {entry.name: entry.shape for entry in ledger.entries} == {e.name: e.shape for e in plain.entries}
    assert [group.relation for group in answer.groups] == ["tied"]
    assert answer.verdict == "consistent"


# -- ZeRO-3 ---------------------------------------------------------------------------------------


def partitioned(model, **more):
    """What DeepSpeed writes of a model into *_model_states.pt, after `_save_checkpoint` of its
    engine.
    """
    shapes = collections.OrderedDict((name, one.shape) for name, one in model.named_parameters() if one.requires_grad)
    state = collections.OrderedDict(
        (name, torch.empty(0, dtype=torch.bfloat16)) for name, _ in model.named_parameters()
    )
    return {"module": state, "param_shapes": [shapes], "buffer_names": [], "optimizer": None, "global_steps": 1,
            "dp_world_size": 2, "ds_version": "0.16.4", **more}  # fmt: skip


def test_empty_tensors_of_zero_3_are_counted_by_their_shapes(tmp_path):
    model, path = Tiny(), tmp_path / "zero_pp_rank_0_mp_rank_00_model_states.pt"
    whole = partitioned(model, shared_params={"lm_head.weight": "transformer.wte.weight"})
    whole["module"]["lm_head.weight"] = torch.empty(0, dtype=torch.bfloat16)
    whole["module"]["mask"], whole["buffer_names"] = torch.ones(4), ["mask"]
    torch.save(whole, path)
    ledger = count(path)
    assert ledger.total == numel(model)
    assert (ledger.totals["buffers"], ledger.totals["stored_bytes"]) == (4, 16)
    assert [set(tie.names) for tie in ledger.ties] == [{"transformer.wte.weight", "lm_head.weight"}]
    assert ledger.by("role") == count(model).by("role")
    assert noted(ledger, "counted by the shapes in param_shapes")


def test_frozen_parameters_of_zero_3_and_the_older_form(tmp_path):
    model, path = Tiny(tie=False), tmp_path / "a.pt"
    model.transformer.requires_grad_(False)
    frozen = {name: one.shape for name, one in model.named_parameters() if not one.requires_grad}
    whole = partitioned(model, frozen_param_shapes=frozen)
    torch.save(whole, path)
    assert count(path).total == numel(model)
    torch.save({**whole, "param_shapes": whole["param_shapes"][0], "module": {"step": torch.empty(0)}}, path)
    assert count(path).total == numel(model)


def test_the_whole_tensors_of_zero_2_are_counted_as_they_are(tmp_path):
    model, path = Tiny(tie=False), tmp_path / "mp_rank_00_model_states.pt"
    torch.save({**partitioned(model), "module": model.state_dict()}, path)
    ledger = count(path)
    assert (ledger.total, ledger.totals["bytes"]) == (numel(model), 4 * numel(model))
    assert not noted(ledger, "param_shapes:")
