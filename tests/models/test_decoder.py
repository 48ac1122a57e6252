"""The decoder beside transformers: the same logits from the same weights, in whole, in pieces and
padded.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
import transformers
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from decoder_configs import drawn_config
from decoders import KINDS, SIZES, VOCABULARY, ours, theirs
from drawing import drawn
from rotating import half_by_commit
from tallystick.errors import BadInput
from tallystick.models import Decoder, families

ABSOLUTE, RELATIVE = 1e-4, 1e-5  # of the largest logit


def apart(found, expected):
    """How far two tensors of logits are apart, where that is too far; else nothing."""
    gap, largest = (found - expected).abs().max().item(), expected.abs().max().item()
    return "" if gap <= min(ABSOLUTE, RELATIVE * max(1.0, largest)) else f"{gap} apart of {largest}"


def assert_close(found, expected):
    assert not apart(found, expected), apart(found, expected)


def first_wrong_layer(model, decoder, tokens, padding, real, **read):
    """Where the two part, for whoever reads a failure."""
    wanted = model(tokens, output_hidden_states=True, **read).hidden_states
    found: list[torch.Tensor] = []
    hooks = [decoder.layers[0].register_forward_pre_hook(lambda _, inputs: found.append(inputs[0]))]
    hooks += [block.register_forward_hook(lambda _, __, out: found.append(out)) for block in decoder.layers[:-1]]
    hooks += [(decoder.norm or decoder.layers[-1]).register_forward_hook(lambda _, __, out: found.append(out))]
    decoder(tokens, padding=padding)
    for hook in hooks:
        hook.remove()
    names = ["the embedding", *(f"layer {layer}" for layer in range(len(decoder.layers)))]
    gaps = {name: apart(one[real], other[real]) for name, one, other in zip(names, found, wanted, strict=True)}
    return next((f"{name} is {gap}" for name, gap in gaps.items() if gap), "the head is wrong")


@pytest.fixture(params=KINDS)
def pair(request):
    model = theirs(request.param, **KINDS[request.param])
    return model, ours(model)


def test_every_family_is_tested():
    assert {*KINDS, "palm", "nanogpt"} >= set(families.known())


@torch.no_grad()
def test_padding_at_the_left_changes_nothing_that_counts(pair):
    model, decoder = pair
    tokens, padding = torch.randint(VOCABULARY, (2, 40)), torch.tensor([0, 6])
    real = torch.arange(40) >= padding[:, None]
    positions = (real.cumsum(-1) - 1).clamp(min=0)
    expected = model(tokens, attention_mask=real.long(), position_ids=positions).logits
    assert_close(decoder(tokens, padding=padding)[real], expected[real])


@torch.no_grad()
@pytest.mark.parametrize("length", [19, 20])
@pytest.mark.parametrize(
    "rope",
    [
        {"rope_type": "dynamic", "factor": 4.0},
        {"rope_type": "longrope", "short_factor": [1.0] * 6, "long_factor": [3.0] * 6},
    ],
    ids=lambda rope: rope["rope_type"],
)
def test_a_text_is_long_by_its_own_tokens_and_not_by_the_padding(rope, length):
    """Both scalings turn other angles in texts of more than 16 tokens; three at the left are
    padding in each.
    """
    model = theirs("llama", **SIZES, max_position_embeddings=16, rope_parameters=rope)
    decoder = ours(model)
    tokens, padding = torch.randint(VOCABULARY, (2, length)), torch.tensor([3, 5])
    real = torch.arange(length) >= padding[:, None]
    positions = (real.cumsum(-1) - 1).clamp(min=0)
    expected = model(tokens, attention_mask=real.long(), position_ids=positions).logits
    assert_close(decoder(tokens, padding=padding)[real], expected[real])


@torch.no_grad()
def test_padding_at_the_right_needs_no_mask(pair):
    model, decoder = pair
    tokens = torch.randint(VOCABULARY, (2, 40))
    real = torch.arange(40) < torch.tensor([40, 31])[:, None]
    expected = model(tokens, attention_mask=real.long()).logits
    assert_close(decoder(tokens)[real], expected[real])


@torch.no_grad()
@pytest.mark.parametrize("padding", [None, torch.tensor([0, 6])])
def test_read_in_pieces_it_says_the_same(pair, padding):
    _, decoder = pair
    tokens = torch.randint(VOCABULARY, (2, 40))
    cache = decoder.cache(2, 64)
    pieces = tokens.split((10, 5, *[1] * 25), dim=1)
    read = torch.cat([decoder(piece, cache=cache, padding=padding) for piece in pieces], dim=1)
    whole = decoder(tokens, padding=padding)
    real = torch.arange(40) >= (torch.zeros(2) if padding is None else padding)[:, None]
    assert_close(read[real], whole[real])


# -- drawn configs --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", half_by_commit(KINDS, "src/tallystick/models/"))
def test_the_logits_are_those_of_transformers_for_drawn_configs(kind):
    """Whole, padded at the left and at the right, and read in pieces."""

    @drawn(12)
    @given(st.data())
    @torch.no_grad()
    def same(data):
        values = data.draw(drawn_config(kind))
        length = data.draw(st.integers(1, 40))
        side = data.draw(st.sampled_from(["left", "right", None]))
        pads = torch.tensor([data.draw(st.integers(0, length - 1)) if side else 0 for _ in range(2)])
        model = theirs(kind, **values)
        decoder = ours(model)
        assert stated(decoder.config) == stated(families.config_of({"model_type": kind, **values})), values
        torch.manual_seed(data.draw(st.integers(0, 1000)))
        tokens = torch.randint(VOCABULARY, (2, length))
        padding = pads if side == "left" else None
        places = torch.arange(length)
        real = places >= pads[:, None] if side == "left" else places < length - pads[:, None]
        read = {"attention_mask": real.long()} if side else {}
        if side == "left":
            read["position_ids"] = (real.cumsum(-1) - 1).clamp(min=0)
        expected, found = model(tokens, **read).logits, decoder(tokens, padding=padding)
        gap = apart(found[real], expected[real])
        assert not gap, f"{gap}; {first_wrong_layer(model, decoder, tokens, padding, real, **read)}; {values}"
        if length <= at_one_speed(decoder.config):
            pieces = tokens.split(data.draw(st.sampled_from([1, 5])), dim=1)
            cache = decoder.cache(2, length)
            found = torch.cat([decoder(piece, cache=cache, padding=padding) for piece in pieces], dim=1)
            assert not apart(found[real], expected[real]), f"read in pieces: {values}"

    same()


@pytest.mark.parametrize("kind", KINDS)
def test_a_key_left_out_is_what_transformers_says_it_is(kind):
    theirs = transformers.AutoConfig.for_model(kind)
    assert stated(families.config_of({"model_type": kind})) == stated(families.config_of(theirs))


def stated(config):
    """A config with what `None` stands for."""
    return replace(config, kv_heads=config.kv_count, head_dim=config.head_size)


def at_one_speed(config):
    """So many tokens turn as they did when the first was read: two of the scalings turn those of
    long texts otherwise.
    """
    scaling = config.rope.scaling if config.rope else {}
    return {"dynamic": config.context, "longrope": scaling.get("original_max_position_embeddings")}.get(
        scaling.get("rope_type"), 10**9
    )


# -- PaLM -----------------------------------------------------------------------------------------


class Palm(nn.Module):
    """Section 2.1 of the paper, by hand: parallel blocks, one head of keys and values, SwiGLU, no
    biases, a shared embedding whose logits are scaled by 1/√d (section 5).
    """

    def __init__(self, vocabulary, d, layers, heads, size):
        super().__init__()
        self.heads, self.size = heads, size
        self.embedding = nn.Embedding(vocabulary, d)
        shapes = {"q": (heads * size, d), "k": (size, d), "v": (size, d), "o": (d, heads * size), "gate": (4 * d, d)}
        shapes |= {"up": (4 * d, d), "down": (d, 4 * d)}
        self.layers = nn.ModuleList(
            nn.ParameterDict({name: nn.Parameter(torch.randn(shape) * 0.2) for name, shape in shapes.items()})
            for _ in range(layers)
        )

    def forward(self, tokens):
        x, count, half = self.embedding(tokens), tokens.shape[1], self.size // 2
        angles = torch.arange(count)[:, None] / 10000 ** (torch.arange(half) / half)  # (T, h / 2)
        for w in self.layers:
            y = F.layer_norm(x, x.shape[-1:], eps=1e-6)
            q = (y @ w["q"].T).unflatten(-1, (self.heads, self.size))  # (B, T, H, h)
            q = self.turned(q, angles[:, None])
            k, v = self.turned(y @ w["k"].T, angles), y @ w["v"].T  # (B, T, h)
            scores = torch.einsum("bthc,bsc->bhts", q, k) / self.size**0.5
            scores = scores.masked_fill(torch.ones(count, count).triu(1).bool(), -torch.inf).softmax(-1)
            attended = torch.einsum("bhts,bsc->bthc", scores, v).flatten(2) @ w["o"].T
            x = x + attended + (F.silu(y @ w["gate"].T) * (y @ w["up"].T)) @ w["down"].T
        return F.layer_norm(x, x.shape[-1:], eps=1e-6) @ self.embedding.weight.T / x.shape[-1] ** 0.5

    @staticmethod
    def turned(x, angles):
        one, two = x.chunk(2, -1)
        return torch.cat((one * angles.cos() - two * angles.sin(), two * angles.cos() + one * angles.sin()), -1)


@torch.no_grad()
def test_palm_is_that_of_its_paper():
    torch.manual_seed(0)
    paper = Palm(VOCABULARY, 48, 2, 3, 8)
    decoder = Decoder.of({"model_type": "palm"}, vocab_size=VOCABULARY, d_model=48, n_layers=2, n_heads=3, head_dim=8)
    mine = dict(decoder.named_parameters())
    mine["embedding.weight"].copy_(paper.embedding.weight)
    for layer, weights in enumerate(paper.layers):
        for name, weight in weights.items():
            part = "attention" if name in "qkvo" else "mlp"
            mine[f"layers.{layer}.{part}.{name}_proj.weight"].copy_(weight)
    assert len(mine) == 1 + 2 * 7
    tokens = torch.randint(VOCABULARY, (2, 30))
    assert_close(decoder(tokens), paper(tokens))


def test_palm_is_drawn_by_the_inputs_of_each_matrix():
    torch.manual_seed(0)
    decoder = Decoder.of({"model_type": "palm"}, vocab_size=500, d_model=64, n_layers=8, n_heads=4, head_dim=16)
    assert decoder.embedding.weight.std().item() == pytest.approx(1, rel=0.02)
    for name, inputs in (("q_proj", 64), ("o_proj", 64), ("up_proj", 64), ("down_proj", 256)):
        drawn = torch.cat([weight.flatten() for key, weight in decoder.named_parameters() if name in key])
        assert drawn.std().item() == pytest.approx(inputs**-0.5, rel=0.02), name


# -- what is rounded where ------------------------------------------------------------------------


@torch.no_grad()
@pytest.mark.parametrize("kind", ["llama", "gemma", "gemma2", "olmo2", "nanochat"])
def test_norms_round_to_bfloat16_where_those_of_transformers_do(kind):
    model = theirs(kind, **KINDS[kind])
    decoder = ours(model).bfloat16()
    x = torch.randn(200, 48).bfloat16() * 3
    assert torch.equal(decoder.norm(x), model.bfloat16().model.norm(x))


@torch.no_grad()
@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_experts_work_in_every_dtype(dtype):
    torch.manual_seed(0)
    decoder = Decoder.of({**KINDS["mixtral"], "model_type": "mixtral"})
    tokens = torch.randint(VOCABULARY, (2, 30))
    wanted = decoder(tokens)
    found = decoder.to(dtype)(tokens)
    assert found.dtype == dtype
    # A rounded score may send a token to other experts: most of them go where they went.
    near = ((found - wanted).abs().amax(-1) < 0.02 * wanted.abs().max()).float().mean()
    assert near > 0.9


def test_under_autocast_the_products_of_experts_are_of_its_dtype(monkeypatch):
    seen = []
    products = F.grouped_mm
    monkeypatch.setattr(F, "grouped_mm", lambda x, *rest, **more: seen.append(x.dtype) or products(x, *rest, **more))
    decoder = Decoder.of({**KINDS["mixtral"], "model_type": "mixtral"}, num_hidden_layers=1)
    with torch.autocast("cpu", torch.bfloat16):
        decoder(torch.tensor([[1, 2, 3]])).float().sum().backward()
    assert seen == [torch.bfloat16] * 3
    assert decoder.layers[0].mlp.experts.up_proj.grad.dtype == torch.float32


# -- what its configs refuse ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"model_type": "lama"}, "model type 'lama' is not among tallystick's decoders; nearest: llama"),
        ({"model_type": "llama", "hidden_size": 10, "num_attention_heads": 3}, "hidden_size = 10 is not divisible"),
        ({"model_type": "llama", "rope_parameters": {"rope_type": "yarm", "factor": 2.0}}, "'yarm' is not known; nearest: yarn"),
        ({"model_type": "llama", "rope_scaling": {"type": "linear"}}, "rope_type linear needs factor, which is None"),
        ({"model_type": "llama", "hidden_act": "sillu"}, "activation 'sillu' is not known; nearest: silu"),
        ({"model_type": "llama", "vocab_size": -1}, "vocab_size is -1"),
        ({"model_type": "gpt2", "add_cross_attention": True}, "supports neither cross-attention"),
        (
            {"model_type": "phi3", "rope_scaling": {"type": "su", "short_factor": [1.0], "long_factor": [1.0]}},
            "short_factor has 1 numbers, but the rotary size needs 48",
        ),
        ({"model_type": "gemma2", "use_bidirectional_attention": True}, "is not supported: decoders are causal"),
        ({"model_type": "palm"}, "d_model is missing"),
    ],
)  # fmt: skip
def test_configs_that_make_no_decoder_are_refused(values, message):
    with torch.device("meta"), pytest.raises(BadInput, match=message):
        Decoder.of(values)


def test_a_setting_that_nothing_reads_is_refused():
    with pytest.raises(BadInput, match="no key 'n_layers' to set; nearest: n_layer"):
        Decoder.of("gpt2", n_layers=2)
