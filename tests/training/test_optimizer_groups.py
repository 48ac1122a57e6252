"""Optimizer groups: every trainable storage once, decayed as its role has it, whatever the family
and the ties.
"""

from __future__ import annotations

import pytest
import torch
from torch import nn

from decoders import KINDS
from tallystick.errors import BadInput
from tallystick.live import check_optimizer
from tallystick.models import Decoder
from tallystick.training.config import TrainConfig
from tallystick.training.groups import optimizer_groups
from tallystick.training.optimizers import optimizers_of


def decoder_of(kind, *, tied=True):
    return Decoder.of({**KINDS[kind], "model_type": kind, "tie_word_embeddings": tied})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_every_family_is_stepped_once(kind, tied, optimizer):
    decoder = decoder_of(kind, tied=tied)
    optimizers, _ = optimizers_of(TrainConfig(optimizer=optimizer), decoder)
    listed = [one for found in optimizers for group in found.param_groups for one in group["params"]]
    assert len(listed) == len({one.data_ptr() for one in listed})
    assert {id(one) for one in listed} == {id(one) for one in decoder.parameters()}
    if optimizer == "adamw":
        assert not [finding for finding in check_optimizer(decoder, optimizers[0]) if finding.problem]


def test_weights_of_products_are_decayed_and_nothing_else():
    groups = optimizer_groups(decoder_of("gpt2"), 0.1)
    parts = [
        "attention.q_proj",
        "attention.k_proj",
        "attention.v_proj",
        "attention.o_proj",
        "mlp.up_proj",
        "mlp.down_proj",
    ]
    assert set(groups.decayed) == {f"layers.{layer}.{part}.weight" for layer in range(3) for part in parts}
    assert set(groups.vocabulary) == {"embedding.weight"}
    norms = [f"layers.{layer}.{norm}" for layer in range(3) for norm in ("attention_norm", "mlp_norm")]
    assert set(groups.plain) == {
        "positions.weight",
        *(f"{norm}.{part}" for norm in [*norms, "norm"] for part in ("weight", "bias")),
        *(f"layers.{layer}.{part}.bias" for layer in range(3) for part in parts),
    }
    assert [group["weight_decay"] for group in groups.lists()] == [0.1, 0.1, 0.0]


def test_the_norms_of_queries_and_keys_are_not_decayed_and_experts_and_their_router_are():
    groups = optimizer_groups(decoder_of("qwen3_moe"), 0.1)
    assert {"layers.0.attention.q_norm.weight", "layers.0.attention.k_norm.weight"} <= set(groups.plain)
    sparse = {name for name in groups.decayed if name.startswith("layers.0.mlp.")}
    assert len(sparse) == 4, sparse  # three stacked projections and the router


def test_the_tied_matrix_is_decayed_as_one_is_told_and_the_summary_counts_it():
    decoder = decoder_of("gpt2")
    spared = optimizer_groups(decoder, 0.1, decay_embedding=False)
    assert [group["weight_decay"] for group in spared.lists()] == [0.1, 0.0, 0.0]
    assert spared.summary()[1] == (
        "token embedding and head, tied (embedding.weight = head.weight): 1 tensors, 4,656 parameters, weight decay 0"
    )
    assert optimizer_groups(decoder, 0.1).summary()[1].endswith("weight decay 0.1")
    assert "tied" not in optimizer_groups(decoder_of("gpt2", tied=False), 0.1).summary()[1]


def test_what_is_frozen_is_in_no_group():
    decoder = decoder_of("llama")
    decoder.embedding.weight.requires_grad_(False)
    assert optimizer_groups(decoder, 0.1).vocabulary == {}
    assert len(optimizer_groups(decoder, 0.1).lists()) == 2


def test_two_parameters_on_one_memory_are_refused_with_the_remedy():
    decoder = decoder_of("llama")
    decoder.head.weight = nn.Parameter(decoder.embedding.weight.detach())
    with pytest.raises(
        BadInput, match=r'sharing memory.*tallystick\.retie\(model, "embedding\.weight", "head\.weight"\)'
    ):
        optimizer_groups(decoder, 0.1)


def test_muon_steps_the_matrices_of_the_layers_and_adamw_the_rest():
    decoder = decoder_of("mixtral")
    (muon, adamw), _ = optimizers_of(TrainConfig(optimizer="muon"), decoder)
    assert isinstance(muon, torch.optim.Muon)
    by_muon = {id(one) for group in muon.param_groups for one in group["params"]}
    assert id(decoder.layers[0].attention.q_proj.weight) in by_muon
    assert id(decoder.embedding.weight) not in by_muon
    assert all(one.ndim == 2 for group in muon.param_groups for one in group["params"])
    assert adamw.defaults["fused"]
    assert {group["weight_decay"] for group in muon.param_groups} == {0.1}


def as_in_nanogpt(model):
    """The rule of nanoGPT's `configure_optimizers`: each Parameter once, by its dimensions."""
    named = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    return {name for name, parameter in named.items() if parameter.dim() >= 2}


@pytest.mark.parametrize("kind", ["gpt2", "llama", "qwen3"])
@pytest.mark.parametrize("tied", [True, False])
def test_decay_as_in_nanogpt(kind, tied):
    decoder = decoder_of(kind, tied=tied)
    groups = optimizer_groups(decoder, 0.1, decay="nanogpt")
    assert {*groups.decayed, *groups.vocabulary} == as_in_nanogpt(decoder)
    rates = {id(one): group["weight_decay"] for group in groups.lists() for one in group["params"]}
    assert rates == {id(one): 0.1 if one.dim() >= 2 else 0.0 for one in decoder.parameters()}


def test_the_default_differs_from_nanogpt_in_the_positions_alone():
    groups = optimizer_groups(decoder_of("gpt2"), 0.1)
    assert as_in_nanogpt(decoder_of("gpt2")) - {*groups.decayed, *groups.vocabulary} == {"positions.weight"}
    assert optimizer_groups(decoder_of("gpt2"), 0.1, decay="nanogpt").summary()[2].startswith("biases, norms: ")


def test_another_rule_of_decay_is_refused():
    with pytest.raises(BadInput, match="decay is 'nanochat', expected roles or nanogpt"):
        optimizer_groups(decoder_of("gpt2"), 0.1, decay="nanochat")
