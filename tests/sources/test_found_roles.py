"""Roles that no config tells: found by structure, the same for a live model and for its file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from checkpoints import write
from tallystick import assert_tied, compute, count, ties
from tallystick.core.ledger import Ledger

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


def in_a_row() -> nn.Module:
    """A model that is a Sequential: its ends have names as its layers have."""

    def block() -> nn.Module:
        return parts(sa=parts(x=linear(WIDTH, 3 * WIDTH), y=linear(WIDTH, WIDTH)), up=widening())

    ends = nn.Embedding(VOCABULARY, WIDTH), linear(WIDTH, VOCABULARY)
    return nn.Sequential(ends[0], block(), block(), nn.LayerNorm(WIDTH), ends[1])


def gated() -> nn.Module:
    """A gated MLP, whose gate is no router."""

    def net() -> nn.Module:
        return parts(gate=linear(WIDTH, 40), up=linear(WIDTH, 40), down=linear(40, WIDTH))

    body = sequence(lambda: parts(attn=projections(), net=net()))
    return parts(tok=nn.Embedding(VOCABULARY, WIDTH), layers=body, to_logits=linear(WIDTH, VOCABULARY))


def fused() -> nn.Module:
    """An MLP whose gate and up projection are one matrix, by names that say nothing."""

    def block() -> nn.Module:
        net = parts(p=linear(WIDTH, 8 * WIDTH), q=linear(4 * WIDTH, WIDTH))
        return parts(a=parts(x=linear(WIDTH, 3 * WIDTH), y=linear(WIDTH, WIDTH)), b=net)

    return parts(lookup=Table(), body=sequence(block), fc=linear(WIDTH, VOCABULARY))


def narrow() -> nn.Module:
    """An MLP that widens by half, which only a module of its own tells."""

    def block() -> nn.Module:
        net = parts(p=linear(WIDTH, 24), q=linear(24, WIDTH))
        return parts(a=parts(x=linear(WIDTH, 3 * WIDTH), y=linear(WIDTH, WIDTH)), b=net)

    return parts(lookup=Table(), body=sequence(block), fc=linear(WIDTH, VOCABULARY))


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
        in_a_row,
        {
            "token_embedding": MATRIX,
            "attention": 2 * PROJECTIONS,
            "mlp": 2 * WIDENING,
            "norm": 2 * WIDTH,
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
    (
        fused,
        {
            "token_embedding": MATRIX,
            "attention": 2 * PROJECTIONS,
            "mlp": 2 * 12 * WIDTH**2,
            "head": MATRIX,
        },
    ),
    (
        narrow,
        {
            "token_embedding": MATRIX,
            "attention": 2 * PROJECTIONS,
            "mlp": 2 * 2 * 24 * WIDTH,
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


@pytest.mark.parametrize(
    ("leaf", "shape", "role"),
    [
        ("weight", (16, 3, 14, 14), "conv"),  # over an image's patches
        ("weight", (16, 1, 32), "conv"),  # over each channel's last tokens
        ("weight", (16, 2, 4), "other"),  # experts, or heads
        ("weight", (16, 1, 33), "other"),  # no kernel is so wide
        ("weight", (16, 3, 14, 33), "other"),
        ("table", (16, 3, 14, 14), "other"),
        ("table", (16, 1, 4), "other"),
    ],
)
def test_a_kernel_is_found_by_its_shape(tmp_path: Path, leaf: str, shape: tuple[int, ...], role: str):
    ledger = count(write(tmp_path / "a.safetensors", {f"x.y.{leaf}": shape, "x.z.weight": (4, 6)}))
    assert ledger.tensors[f"x.y.{leaf}"].role == role


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


# -- mixtures of experts --------------------------------------------------------------------------

EXPERTS, USED, INNER = 6, 2, 24


class Stacked(nn.Module):
    """Experts in three tensors beside their router, which is called gate; one more that every token
    uses.
    """

    def __init__(self, *, shared: bool = True, **says: int) -> None:
        super().__init__()
        self.gate = linear(WIDTH, EXPERTS)
        experts = nn.Module()
        for name, shape in (("a", (INNER, WIDTH)), ("b", (INNER, WIDTH)), ("c", (WIDTH, INNER))):
            setattr(experts, name, nn.Parameter(torch.randn(EXPERTS, *shape)))
        self.inner = experts
        if shared:
            self.shared_expert = parts(up=linear(WIDTH, INNER), down=linear(INNER, WIDTH))
        for name, value in says.items():
            setattr(self, name, value)


class Listed(nn.Module):
    """One list of matrices for each of an expert's three, as long as the router has rows."""

    def __init__(self, **says: int) -> None:
        super().__init__()
        self.scores = linear(WIDTH, EXPERTS)
        for name, inner, outer in (("one", WIDTH, INNER), ("two", WIDTH, INNER), ("three", INNER, WIDTH)):
            self.add_module(name, nn.ModuleList(linear(inner, outer) for _ in range(EXPERTS)))
        for key, value in says.items():
            setattr(self, key, value)


class Biased(nn.Module):
    """Fused experts with biases, which have the router's own shape."""

    def __init__(self, **says: int) -> None:
        super().__init__()
        self.router = nn.Linear(WIDTH, EXPERTS)
        self.first_weight = nn.Parameter(torch.randn(EXPERTS, 2 * INNER, WIDTH))
        self.first_bias = nn.Parameter(torch.randn(EXPERTS, 2 * INNER))
        self.second_weight = nn.Parameter(torch.randn(EXPERTS, WIDTH, INNER))
        self.second_bias = nn.Parameter(torch.randn(EXPERTS, WIDTH))
        for key, value in says.items():
            setattr(self, key, value)


class Nested(nn.Module):
    """Experts that are modules of modules, under a name that says nothing, and a router of two
    matrices.
    """

    def __init__(self, **says: int) -> None:
        super().__init__()
        self.router = parts(choice=linear(WIDTH, EXPERTS), noise=linear(WIDTH, EXPERTS))
        self.many = nn.ModuleList(
            parts(net=nn.Sequential(linear(WIDTH, INNER), nn.Sequential(linear(INNER, INNER), linear(INNER, WIDTH))))
            for _ in range(EXPERTS)
        )
        for key, value in says.items():
            setattr(self, key, value)


def mixture(feed_forward: Callable[[], nn.Module], **says: object) -> nn.Module:
    model = parts(
        tok_embeddings=nn.Embedding(VOCABULARY, WIDTH),
        layers=sequence(lambda: parts(attention=projections(), feed_forward=feed_forward())),
        output=linear(WIDTH, VOCABULARY),
    )
    for name, value in says.items():
        setattr(model, name, value)
    return model


ONE = 3 * INNER * WIDTH
BIASES = 3 * INNER + WIDTH - INNER


@pytest.mark.parametrize(
    ("kind", "experts", "router"),
    [
        (Stacked, EXPERTS * ONE, EXPERTS * WIDTH),
        (Listed, EXPERTS * ONE, EXPERTS * WIDTH),
        (Biased, EXPERTS * (ONE + BIASES), EXPERTS * WIDTH + EXPERTS),
    ],
)
def test_experts_are_found_by_their_router(kind, experts: int, router: int, tmp_path: Path):
    model = mixture(kind)
    for ledger in (count(model), *filed(model, tmp_path)):
        roles = ledger.by("role")
        assert (roles["experts"], roles["router"]) == (2 * experts, 2 * router)
        assert roles.get("mlp", 0) == (2 * 2 * INNER * WIDTH if kind is Stacked else 0)  # the shared one
        assert ledger.totals["active"] is None
        assert any(note.startswith("active parameters are unknown") for note in ledger.notes)


@pytest.mark.parametrize(
    ("on", "name"),
    [
        ("module", "num_activated_experts"),
        ("module", "top_k"),
        ("module", "k"),
        ("module", "moe_top_k"),
        ("module", "experts_per_token"),
        ("module", "n_activated_experts"),
        ("config", "num_experts_per_tok"),
        ("config", "n_expert_per_token"),
        ("config", "moe_topk"),
    ],
)
@pytest.mark.parametrize("kind", [Stacked, Listed, Biased])
def test_active_is_known_where_the_model_says_how_many_experts_a_token_uses(kind, on: str, name: str):
    says = {name: USED}
    model = mixture(kind, config=SimpleNamespace(**says)) if on == "config" else mixture(lambda: kind(**says))
    total = sum(p.numel() for p in model.parameters())
    idle = 2 * (EXPERTS - USED) * (ONE + (BIASES if kind is Biased else 0))
    ledger = count(model)
    assert (ledger.total, ledger.totals["active"]) == (total, total - idle)
    assert not any(note.startswith("active parameters") for note in ledger.notes)


def test_experts_of_several_modules_are_found_by_their_list():
    model = mixture(lambda: Nested(top_k=USED))
    ledger = count(model)
    assert ledger.by("role")["experts"] == 2 * EXPERTS * (2 * WIDTH * INNER + INNER**2)
    assert ledger.by("role")["router"] == 2 * 2 * EXPERTS * WIDTH
    assert ledger.totals["active"] == ledger.total - 2 * (EXPERTS - USED) * (2 * WIDTH * INNER + INNER**2)


def test_a_configs_top_k_is_of_sampling():
    model = mixture(Stacked, config=SimpleNamespace(top_k=3, k=2))
    assert count(model).totals["active"] is None


def test_more_experts_than_there_are_say_nothing():
    assert count(mixture(lambda: Listed(top_k=EXPERTS + 1))).totals["active"] is None


def test_the_compute_of_a_live_mixture_is_of_the_experts_that_run():
    def forward(used: int) -> int:
        return compute(mixture(lambda: Listed(top_k=used)), batch=1, sequence=7).forward_flops

    assert forward(EXPERTS) - forward(USED) == 2 * 7 * 2 * (EXPERTS - USED) * ONE


def test_embeddings_that_add_to_the_values_are_looked_up():
    tables = [one for one in compute(with_values(), batch=1, sequence=4).lines if "value_embeds" in one.what]
    assert tables
    assert sum(one.forward_flops for one in tables) == 0
