"""Live modules: what torch itself says is the truth, object by object and element by element."""

import copy

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrize
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, MixtralConfig, MixtralForCausalLM

import tallystick
from small import small_model
from tallystick import BadInput, count

GPT2 = 124_439_808
HEAD = 38_597_376  # 50257 × 768
TINY = GPT2Config(vocab_size=101, n_positions=16, n_embd=8, n_layer=2, n_head=2)


class Tied(nn.Module):
    """The smallest model with a tie: 7 × 3 once, under two names."""

    def __init__(self, *, tie=True):
        super().__init__()
        self.wte = nn.Embedding(7, 3)
        self.lm_head = nn.Linear(3, 7, bias=False)
        if tie:
            self.lm_head.weight = self.wte.weight


class Holder(nn.Module):
    def __init__(self, **tensors):
        super().__init__()
        for name, tensor in tensors.items():
            setattr(self, name, tensor if isinstance(tensor, nn.Module) else nn.Parameter(tensor))


def relations(ledger):
    return [(tie.names, tie.relation, tie.parameters) for tie in ledger.ties]


def names(ledger):
    return [entry.name for entry in ledger.entries]


@pytest.fixture
def gpt2():
    with torch.device("meta"):
        return GPT2LMHeadModel(GPT2Config())


# -- the seed -------------------------------------------------------------------------------------


def test_gpt2_on_the_meta_device_keeps_its_tie(gpt2):
    ledger = count(gpt2)
    assert ledger.total == GPT2
    assert ledger.kind == "module"
    assert ledger.architecture == "gpt2"
    assert ledger.totals["by_name"] == GPT2 + HEAD
    assert ledger.totals["parameters"] == GPT2
    assert relations(ledger) == [(("transformer.wte.weight", "lm_head.weight"), "tied", HEAD)]


def test_a_replaced_head_is_counted_and_named(gpt2):
    with torch.device("meta"):
        gpt2.lm_head = nn.Sequential(nn.Linear(768, 50257, bias=False))
    ledger = count(gpt2)
    assert ledger.total == GPT2 + HEAD == 163_037_184
    assert ledger.ties == ()
    (note,) = ledger.notes
    assert "lm_head.0.weight" in note
    assert "no longer tied to transformer.wte.weight" in note
    assert f"+{HEAD:,}" in note
    gpt2.lm_head[0].weight = gpt2.transformer.wte.weight
    assert count(gpt2).total == GPT2


# -- relations ------------------------------------------------------------------------------------


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_tied_by_object(device):
    ledger = count(Tied().to(device) if device == "cpu" else _on_meta(Tied))
    assert (ledger.total, ledger.totals["by_name"], ledger.totals["parameters"]) == (21, 42, 21)
    assert relations(ledger) == [(("wte.weight", "lm_head.weight"), "tied", 21)]


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_aliased_is_one_storage_in_two_parameters(device):
    def build():
        model = Tied(tie=False)
        model.lm_head.weight = nn.Parameter(model.wte.weight.data)
        return model

    ledger = count(build() if device == "cpu" else _on_meta(build))
    assert (ledger.total, ledger.totals["by_name"], ledger.totals["parameters"]) == (21, 42, 42)
    assert relations(ledger) == [(("wte.weight", "lm_head.weight"), "aliased", 21)]


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_untied_and_copied_share_nothing(device):
    ledger = count(Tied(tie=False) if device == "cpu" else _on_meta(lambda: Tied(tie=False)))
    assert ledger.total == 42
    assert ledger.ties == ()
    assert any("lm_head.weight is not tied to wte.weight" in note for note in ledger.notes)


def test_many_meta_tensors_are_not_taken_for_one():
    # Every data pointer is 0 on the meta device: a count keyed on it would stop at one tensor.
    assert count(_on_meta(lambda: nn.Sequential(*(nn.Linear(4, 4) for _ in range(5))))).total == 5 * 20


def test_a_transposed_tie_is_a_tie():
    weight = torch.randn(7, 3)
    ledger = count(Holder(embedding=weight, head=weight.t()))
    assert ledger.total == 21
    assert relations(ledger) == [(("embedding", "head"), "aliased", 21)]


def test_disjoint_slices_of_one_storage_share_nothing():
    flat = torch.randn(24)
    columns = torch.randn(4, 6)
    ledger = count(Holder(a=flat[:10], b=flat[10:], c=columns[:, :2], d=columns[:, 2:]))
    assert ledger.total == 48
    assert ledger.ties == ()


def test_overlapping_views_are_counted_once():
    flat = torch.randn(20)
    grid = torch.randn(4, 6)
    ledger = count(Holder(a=flat[:12], b=flat[8:], c=grid[:3], d=grid[:, 4:]))
    assert ledger.total == 20 + 18 + 2  # d adds the last row's two columns
    assert relations(ledger) == [(("a", "b"), "aliased", 4), (("c", "d"), "aliased", 6)]
    assert ledger.by("tensor") == {"a": 12, "b": 8, "c": 18, "d": 2}


def test_views_that_start_together_are_not_thereby_equal():
    flat = torch.randn(20)
    ledger = count(Holder(a=flat[:5], b=flat))
    assert ledger.total == 20
    assert relations(ledger) == [(("a", "b"), "aliased", 5)]


def test_a_view_that_bridges_two_slices():
    flat = torch.randn(30)
    assert count(Holder(a=flat[:10], b=flat[20:], c=flat[5:25])).total == 30


def test_expanded_elements_are_not_more_elements():
    assert count(Holder(a=torch.randn(1, 5).expand(4, 5))).total == 5


def test_a_shared_submodule_is_one():
    linear = nn.Linear(3, 3)
    ledger = count(Holder(first=linear, second=linear))
    assert (ledger.total, ledger.totals["by_name"]) == (12, 24)
    assert [tie.names for tie in ledger.ties] == [("first.weight", "second.weight"), ("first.bias", "second.bias")]


def test_a_group_of_three():
    model = Tied()
    model.third = nn.Linear(3, 7, bias=False)
    model.third.weight = model.wte.weight
    assert relations(count(model)) == [(("wte.weight", "lm_head.weight", "third.weight"), "tied", 42)]


# -- what is in a module --------------------------------------------------------------------------


def test_frozen_parameters_are_not_trainable():
    model = Tied()
    model.extra = nn.Linear(3, 3)
    model.wte.weight.requires_grad_(False)
    assert (count(model).total, count(model).totals["trainable"]) == (33, 12)


def test_buffers_are_counted_apart():
    model = nn.Module()
    model.register_buffer("mask", torch.ones(4, 4))
    model.register_buffer("table", torch.ones(5), persistent=False)
    model.weight = nn.Parameter(torch.ones(2))
    ledger = count(model)
    assert (ledger.total, ledger.totals["buffers"], ledger.totals["by_name"]) == (2, 16, 2)
    assert names(ledger) == ["weight", "mask"]
    assert any("5 more elements" in note for note in ledger.notes)


def test_a_buffer_on_a_parameters_storage_takes_nothing_from_it():
    weight = torch.ones(6)
    model = nn.Sequential(nn.Module(), nn.Module())
    model[0].register_buffer("shadow", weight)  # seen first
    model[1].weight = nn.Parameter(weight)
    assert count(model).total == 6


def test_a_module_without_parameters():
    ledger = count(nn.ReLU())
    assert (ledger.total, ledger.entries, ledger.totals["active"]) == (0, (), 0)
    assert ledger.to_dict(by="layer")["rows"] == []


def test_uninitialised_parameters_are_named_not_guessed():
    ledger = count(nn.Sequential(nn.LazyLinear(4), nn.Linear(4, 2)))
    assert ledger.total == 10
    assert any("2 parameters have no shape" in note and "0.weight" in note for note in ledger.notes)


def test_empty_tensors_share_nothing():
    flat = torch.ones(6)
    ledger = count(Holder(a=torch.empty(0, 3), b=torch.empty(0, 3), c=flat[:0], d=flat[:0]))
    assert (ledger.total, ledger.ties) == (0, ())


def test_dtypes_and_bytes():
    ledger = count(Holder(a=torch.ones(3, dtype=torch.float16), b=torch.ones(5, dtype=torch.float64)))
    assert ledger.by("dtype") == {"float16": 3, "float64": 5}
    assert ledger.totals["bytes"] == 3 * 2 + 5 * 8


def test_packed_integers_are_said():
    model = nn.Module()
    model.packed = nn.Parameter(torch.zeros(4, 4, dtype=torch.uint8), requires_grad=False)
    assert any("hold integers" in note for note in count(model).notes)


def test_parametrizations_keep_the_count():
    class Double(nn.Module):
        def forward(self, weight):
            return 2 * weight

    model = Tied()
    parametrize.register_parametrization(model.wte, "weight", Double())
    truth = sum(p.numel() for p in model.parameters())
    assert count(model).totals["parameters"] == truth
    nn.utils.parametrizations.weight_norm(linear := nn.Linear(4, 3))
    assert count(linear).total == sum(p.numel() for p in linear.parameters()) == 3 + 3 + 12


def test_a_module_inside_itself_ends():
    model = nn.Linear(2, 2)
    model.self = model
    assert count(model).total == 6


# -- wrappers -------------------------------------------------------------------------------------


def test_compiled_and_wrapped_modules_keep_their_own_names():
    plain = names(count(Tied()))
    assert names(count(torch.compile(Tied()))) == plain
    assert names(count(nn.DataParallel(Tied()))) == plain
    assert names(count(nn.DataParallel(torch.compile(Tied())))) == plain
    inside = Holder(block=Tied())
    inside.block = torch.compile(inside.block)
    assert names(count(inside)) == [f"block.{name}" for name in plain]


def test_ddp_keeps_names_and_tie(lone_rank):
    ledger = count(nn.parallel.DistributedDataParallel(Tied()))
    assert names(ledger) == ["wte.weight", "lm_head.weight"]
    assert ledger.total == 21


def test_a_child_called_module_keeps_its_name():
    assert names(count(Holder(module=nn.Linear(2, 2, bias=False)))) == ["module.weight"]


# -- with a transformers config -------------------------------------------------------------------


def test_roles_and_active_experts_come_from_the_config():
    config = MixtralConfig(
        vocab_size=64, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, num_local_experts=4, num_experts_per_tok=1,
    )  # fmt: skip
    model = MixtralForCausalLM(config)
    ledger = count(model)
    experts = 2 * 4 * 3 * 16 * 24
    assert ledger.total == sum(p.numel() for p in model.parameters())
    assert ledger.by("role")["experts"] == experts
    assert ledger.totals["active"] == ledger.total - experts * 3 // 4
    assert ledger.mismatches == {}


def test_a_tied_head_of_any_name_is_told_from_its_embedding():
    """By get_output_embeddings(), where the name of the head, or of the embedding, says nothing."""
    for model_type, embedding, head in (
        ("gemma3_text", "model.embed_tokens.weight", "lm_head.weight"),
        ("whisper", "model.decoder.embed_tokens.weight", "proj_out.weight"),
        ("xlm", "transformer.embeddings.weight", "pred_layer.proj.weight"),
    ):
        model = small_model(model_type, tied=True)
        assert model.get_parameter(embedding) is model.get_parameter(head)
        roles = {entry.name: entry.role for entry in count(model).entries}
        assert (roles[embedding], roles[head]) == ("token_embedding", "head")


def test_config_module_and_dictionary_agree():
    config = LlamaConfig(
        vocab_size=64, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4
    )
    live, told = count(LlamaForCausalLM(config)), count(config)
    assert live.total == told.total == count(config.to_dict()).total
    assert live.by("role") == told.by("role")
    assert names(live) == names(told)
    assert told.kind == "config"


def test_where_a_module_and_its_config_disagree_is_named():
    model = GPT2LMHeadModel(TINY)
    model.transformer.wpe = nn.Embedding(20, 8)
    model.transformer.extra = nn.Linear(2, 2, bias=False)
    del model.transformer.h[1]
    mismatches = count(model).mismatches
    assert mismatches["misshaped"] == ("transformer.wpe.weight: (20, 8), but (16, 8) in the config",)
    assert mismatches["unexpected"] == ("transformer.extra.weight",)
    assert len(mismatches["missing"]) == 12
    assert all(name.startswith("transformer.h.1.") for name in mismatches["missing"])


def test_deepcopy_keeps_what_it_counts():
    model = Tied()
    assert count(copy.deepcopy(model)).to_dict() == count(model).to_dict()


def test_overrides_make_no_sense_for_a_live_module():
    with pytest.raises(BadInput, match="n_layer"):
        count(Tied(), n_layer=3)


def test_a_ledger_of_what_cannot_be_counted():
    with pytest.raises(BadInput, match="cannot count"):
        tallystick.count(42)


def _on_meta(build):
    with torch.device("meta"):
        return build()
