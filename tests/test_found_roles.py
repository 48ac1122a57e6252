"""Roles that no config tells: found by structure, the same for a live model and for its file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from tallystick import assert_tied, count, ties
from tallystick.ledger import Ledger

VOCABULARY, WIDTH = 96, 16


def linear(inner: int, outer: int) -> nn.Linear:
    return nn.Linear(inner, outer, bias=False)


def parts(**modules: nn.Module) -> nn.ModuleDict:
    return nn.ModuleDict(modules)


def sequence(block: Callable[[], nn.Module], layers: int = 2) -> nn.ModuleList:
    return nn.ModuleList(block() for _ in range(layers))


def projections() -> nn.ModuleDict:
    names = ("to_q", "to_k", "to_v", "to_out")
    return parts(**{name: linear(WIDTH, WIDTH) for name in names})


def widening() -> nn.Sequential:
    return nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))


class Scale(nn.Module):
    """A norm whose name and kind say nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(WIDTH))


class Table(nn.Module):
    """A matrix that is no Linear and no Embedding of torch."""

    def __init__(self, rows: int = VOCABULARY, width: int = WIDTH) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(rows, width))


class Banks(nn.Module):
    """All layers' matrices in a few tensors, and embeddings that add to the values."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        self.qk_bank = nn.Parameter(torch.randn(4, 2 * WIDTH, WIDTH))
        self.vo_bank = nn.Parameter(torch.randn(8, WIDTH, WIDTH))
        self.mlp_bank = nn.Parameter(torch.randn(4, 2, 3 * WIDTH, WIDTH))
        self.value_embeds = nn.Parameter(torch.randn(3 * VOCABULARY, WIDTH))
        self.lm_head = linear(WIDTH, VOCABULARY)


def with_lists() -> nn.Module:
    """Sub-layers in lists: norms, what runs, and a gate of the residual stream."""

    def layer(inside: nn.Module) -> nn.ModuleList:
        return nn.ModuleList([nn.ModuleList([Scale()]), inside, parts(gru=nn.GRUCell(WIDTH, WIDTH))])

    blocks = nn.ModuleList(layer(one) for _ in range(2) for one in (projections(), parts(ff=widening())))
    bias = parts(relative_attention_bias=nn.Embedding(32, 4))
    return parts(token_emb=parts(emb=nn.Embedding(VOCABULARY, WIDTH)), layers=blocks, rel_pos=bias)


def nameless() -> nn.Module:
    """Blocks whose parts are called a and b."""

    def block() -> nn.Module:
        return parts(a=parts(x=linear(WIDTH, 3 * WIDTH), y=linear(WIDTH, WIDTH)), b=widening(), n=nn.LayerNorm(WIDTH))

    return parts(lookup=Table(), body=sequence(block), n=nn.LayerNorm(WIDTH), fc=linear(WIDTH, VOCABULARY))


def with_values() -> nn.Module:
    """A table of the vocabulary for every second layer's values, as wide as the model."""
    body = sequence(lambda: parts(attn=projections(), mlp=widening()), 4)
    tables = nn.ModuleDict({number: nn.Embedding(VOCABULARY, WIDTH) for number in ("1", "3")})
    return parts(wte=nn.Embedding(VOCABULARY, WIDTH), h=body, value_embeds=tables, lm_head=linear(WIDTH, VOCABULARY))


def gated() -> nn.Module:
    """A gated MLP, whose gate is no router."""

    def net() -> nn.Module:
        return parts(gate=linear(WIDTH, 40), up=linear(WIDTH, 40), down=linear(40, WIDTH))

    body = sequence(lambda: parts(attn=projections(), net=net()))
    return parts(tok=nn.Embedding(VOCABULARY, WIDTH), layers=body, to_logits=linear(WIDTH, VOCABULARY))


PROJECTIONS, WIDENING, MATRIX = 4 * WIDTH**2, 8 * WIDTH**2 + 5 * WIDTH, VOCABULARY * WIDTH
GRU = 6 * WIDTH**2 + 6 * WIDTH
EXPECTED = [
    (
        with_lists,
        {
            "token_embedding": MATRIX,
            "attention": 2 * PROJECTIONS + 32 * 4,
            "mlp": 2 * WIDENING + 4 * GRU,
            "norm": 4 * WIDTH,
        },
    ),
    (
        nameless,
        {
            "token_embedding": MATRIX,
            "attention": 2 * PROJECTIONS,
            "mlp": 2 * WIDENING,
            "norm": 3 * 2 * WIDTH,
            "head": MATRIX,
        },
    ),
    (
        with_values,
        {
            "token_embedding": MATRIX,
            "attention": 4 * PROJECTIONS + 2 * MATRIX,
            "mlp": 4 * WIDENING,
            "head": MATRIX,
        },
    ),
    (
        Banks,
        {
            "token_embedding": MATRIX,
            "attention": 16 * WIDTH**2 + 3 * MATRIX,
            "mlp": 24 * WIDTH**2,
            "head": MATRIX,
        },
    ),
    (
        gated,
        {
            "token_embedding": MATRIX,
            "attention": 2 * PROJECTIONS,
            "mlp": 2 * 3 * 40 * WIDTH,
            "head": MATRIX,
        },
    ),
]


@pytest.mark.parametrize(("build", "expected"), EXPECTED, ids=[build.__name__ for build, _ in EXPECTED])
def test_a_model_has_the_same_roles_live_and_in_its_files(build: Callable[[], nn.Module], expected, tmp_path: Path):
    model = build()
    assert count(model).by("role") == expected
    for ledger in filed(model, tmp_path):
        assert ledger.by("role") == expected


def filed(model: nn.Module, folder: Path) -> list[Ledger]:
    """What is counted in its files: in its own order, and sorted by name."""
    torch.save(model.state_dict(), folder / "model.pt")
    save_file(model.state_dict(), folder / "model.safetensors")
    return [count(str(folder / name)) for name in ("model.pt", "model.safetensors")]


@pytest.mark.parametrize("name", ["to_logits", "unembedding", "final_proj", "fc", "generator", "words"])
def test_a_head_of_any_name_is_the_matrix_of_the_embeddings_shape(name: str):
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = Table()
            self.layers = sequence(lambda: parts(attn=projections(), mlp=widening()))
            self.add_module(name, Table())

    model = Model()
    roles = {entry.name: entry.role for entry in count(model).entries}
    assert roles[f"{name}.weight"] == "head"
    # One finder: what assert_tied calls lost, ties lists too.
    (group,) = ties(model).groups
    assert group.names == ("embedding.weight", f"{name}.weight")
    with pytest.raises(AssertionError, match=rf"embedding\.weight and {name}\.weight are untied"):
        assert_tied(model)


def test_a_head_that_peft_trains_apart_is_the_head():
    peft = pytest.importorskip("peft")
    model = parts(
        tok_embeddings=nn.Embedding(VOCABULARY, WIDTH), wq=linear(WIDTH, WIDTH), output=linear(WIDTH, VOCABULARY)
    )
    model.output.weight = model.tok_embeddings.weight
    settings = peft.LoraConfig(target_modules=["wq"], modules_to_save=["output"], r=2)
    wrapped = peft.PeftModel(model, settings)
    roles = {entry.name: entry.role for entry in count(wrapped).entries}
    assert roles["base_model.model.output.modules_to_save.default.weight"] == "head"
    names = ("base_model.model.tok_embeddings.weight", "base_model.model.output.modules_to_save.default.weight")
    assert names in {group.names for group in ties(wrapped).groups}
