"""The decoder beside transformers: the same logits from the same weights, in whole, in pieces and padded."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from configs import ABSENT, drawn, nullable, sometimes
from decoders import KINDS, VOCABULARY, ours, theirs
from tallystick.errors import BadInput
from tallystick.models import Decoder, families

ABSOLUTE, RELATIVE = 1e-4, 1e-5  # of the largest logit


def assert_close(found, expected):
    apart = (found - expected).abs().max().item()
    assert apart <= min(ABSOLUTE, RELATIVE * max(1.0, expected.abs().max().item())), f"{apart} apart"


def first_wrong_layer(model, decoder, tokens, **read):
    """Where the two part, for whoever reads a failure."""
    wanted = model(tokens, output_hidden_states=True, **read).hidden_states
    found: list[torch.Tensor] = []
    hooks = [block.register_forward_hook(lambda _, __, out: found.append(out)) for block in decoder.layers]
    decoder(tokens)
    for hook in hooks:
        hook.remove()
    apart = [(one - other).abs().max().item() for one, other in zip(found, wanted[1:-1], strict=False)]
    return next(
        (f"layer {layer} is {gap} apart" for layer, gap in enumerate(apart) if gap > ABSOLUTE), "the end is wrong"
    )


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

THETA = st.sampled_from([100.0, 10000.0])
FACTOR = st.sampled_from([1.5, 4.0])
ROPES = {
    "default": st.fixed_dictionaries({}),
    "linear": st.fixed_dictionaries({"factor": FACTOR}),
    "dynamic": st.fixed_dictionaries({"factor": FACTOR}),
    "llama3": st.fixed_dictionaries(
        {
            "factor": FACTOR,
            "low_freq_factor": st.just(1.0),
            "high_freq_factor": st.just(4.0),
            "original_max_position_embeddings": st.sampled_from([8, 32]),
        }
    ),
    "yarn": st.fixed_dictionaries(
        {"factor": FACTOR, "original_max_position_embeddings": st.sampled_from([8, 16])},
        optional={
            "beta_fast": st.sampled_from([16.0, 32.0]),
            "mscale": st.sampled_from([0.7, 1.0]),
            "mscale_all_dim": st.sampled_from([0.5, 1.0]),
            "attention_factor": st.sampled_from([0.9, 1.2]),
            "truncate": st.booleans(),
        },
    ),
}


@st.composite
def rope(draw):
    kind = draw(st.sampled_from(sorted(ROPES)))
    return {"rope_type": kind, "rope_theta": draw(THETA), **draw(ROPES[kind])}


@st.composite
def longrope(draw, pairs):
    return {
        "rope_type": "longrope",
        "rope_theta": draw(THETA),
        "short_factor": [draw(st.sampled_from([1.0, 1.1])) for _ in range(pairs)],
        "long_factor": [draw(st.sampled_from([1.0, 3.0])) for _ in range(pairs)],
        "original_max_position_embeddings": draw(st.sampled_from([8, 32])),
    }


WINDOW = st.integers(1, 50)
FLAG = st.booleans()
CAP = st.sampled_from([None, 2.0, 30.0])
MORE = {
    "llama": {"attention_bias": FLAG, "mlp_bias": FLAG, "hidden_act": st.sampled_from(["silu", "gelu", "relu"])},
    "mistral": {"sliding_window": nullable(WINDOW)},
    "qwen2": {"use_sliding_window": FLAG, "sliding_window": WINDOW, "max_window_layers": st.integers(0, 3)},
    "qwen3": {"attention_bias": FLAG, "use_sliding_window": FLAG, "sliding_window": WINDOW, "max_window_layers": st.integers(0, 3)},
    "gemma": {"attention_bias": FLAG, "hidden_act": st.sampled_from(["gelu", "gelu_pytorch_tanh"])},
    "gemma2": {
        "attention_bias": FLAG,
        "sliding_window": WINDOW,
        "attn_logit_softcapping": CAP,
        "final_logit_softcapping": CAP,
        "query_pre_attn_scalar": st.sampled_from([4, 100]),
    },
    "phi3": {"sliding_window": nullable(WINDOW)},
    "olmo2": {"attention_bias": FLAG},
    "nanochat": {"attention_bias": FLAG, "final_logit_softcapping": CAP},
    "mixtral": {"sliding_window": nullable(WINDOW), "num_local_experts": st.integers(2, 5)},
    "qwen3_moe": {
        "attention_bias": FLAG,
        "use_sliding_window": FLAG,
        "sliding_window": WINDOW,
        "num_experts": st.integers(2, 5),
        "norm_topk_prob": FLAG,
        "decoder_sparse_step": st.integers(1, 2),
        "moe_intermediate_size": st.sampled_from([4, 40]),
    },
}  # fmt: skip
SPARSE = ("mixtral", "qwen3_moe")
STATED_HEADS = ("llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "phi3", "mixtral", "qwen3_moe")


@st.composite
def small(draw, kind):
    """A config over every option of the family that changes a logit."""
    groups, kv = draw(st.integers(1, 3)), draw(st.integers(1, 2))
    size = draw(st.sampled_from([4, 6, 8]))
    values = {"vocab_size": VOCABULARY, "tie_word_embeddings": draw(FLAG), "pad_token_id": None}
    if kind == "gpt2":
        more = {
            "n_inner": nullable(st.integers(1, 90)),
            "activation_function": st.sampled_from(["gelu_new", "gelu", "relu"]),
            "scale_attn_weights": FLAG,
            "layer_norm_epsilon": st.sampled_from([1e-5, 1e-2]),
        }
        shape = {
            "n_embd": groups * kv * size,
            "n_head": groups * kv,
            "n_layer": draw(st.integers(1, 3)),
            "n_positions": 40,
        }
    else:
        more = {**MORE[kind], "rms_norm_eps": st.sampled_from([1e-6, 1e-2])}
        stated = kind in STATED_HEADS and draw(FLAG)
        head = draw(st.sampled_from([4, 10])) if stated else size
        width = groups * kv * size
        shape = {
            "hidden_size": width + width % 4 if kind in SPARSE else width,
            "num_attention_heads": groups * kv,
            "num_key_value_heads": kv,
            "num_hidden_layers": draw(st.integers(1, 3)),
            # transformers' own experts need rows of a multiple of 16 bytes
            "intermediate_size": draw(st.sampled_from([4, 12, 80]) if kind in SPARSE else st.integers(1, 90)),
            "max_position_embeddings": draw(st.sampled_from([16, 40, 64])),
            **({"head_dim": head} if stated or kind in ("qwen3", "gemma", "gemma2", *SPARSE) else {}),
        }
        if kind == "phi3":
            shape["original_max_position_embeddings"] = shape["max_position_embeddings"]
            shape.pop("head_dim", None)
            values["rope_parameters"] = draw(
                st.one_of(longrope(size // 2), st.just({"rope_type": "default", "rope_theta": 50.0}))
            )
            if values["rope_parameters"]["rope_type"] == "longrope":
                shape["original_max_position_embeddings"] = values["rope_parameters"][
                    "original_max_position_embeddings"
                ]
        else:
            values["rope_parameters"] = draw(rope())
    if kind in SPARSE:
        values["num_experts_per_tok"] = draw(st.integers(1, 2))  # of two at least
    drawn_more = {key: draw(sometimes(value)) for key, value in more.items()}
    return {
        **values,
        **shape,
        **{key: value for key, value in drawn_more.items() if value is not ABSENT},
    }


@pytest.mark.parametrize("kind", KINDS)
def test_the_logits_are_those_of_transformers_for_drawn_configs(kind):
    @drawn(12)
    @given(small(kind), st.integers(1, 40), st.integers(0, 1000))
    @torch.no_grad()
    def same(values, length, seed):
        model = theirs(kind, **values)
        decoder = ours(model)
        torch.manual_seed(seed)
        tokens = torch.randint(VOCABULARY, (2, length))
        expected, found = model(tokens).logits, decoder(tokens)
        apart = (found - expected).abs().max().item()
        largest = expected.abs().max().item()
        assert apart <= min(ABSOLUTE, RELATIVE * max(1.0, largest)), (
            f"{apart} apart of {largest}: {first_wrong_layer(model, decoder, tokens)}, {values}"
        )

    same()


# -- PaLM -----------------------------------------------------------------------------------------


class Palm(nn.Module):
    """Section 2.1 of the paper, by hand: parallel blocks, one head of keys and values, SwiGLU, no biases, a shared
    embedding whose logits are scaled by 1/√d (section 5)."""

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


# -- what its configs refuse ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"model_type": "lama"}, "model type 'lama' is no decoder of tallystick's; nearest: llama"),
        ({"model_type": "llama", "hidden_size": 10, "num_attention_heads": 3}, "hidden_size = 10 is not divisible"),
        ({"model_type": "llama", "rope_parameters": {"rope_type": "yarm", "factor": 2.0}}, "'yarm' is not known; nearest: yarn"),
        ({"model_type": "llama", "rope_scaling": {"type": "linear"}}, "rope_type linear needs factor, and it is None"),
        ({"model_type": "llama", "hidden_act": "sillu"}, "activation 'sillu' is not known; nearest: silu"),
        ({"model_type": "llama", "vocab_size": -1}, "vocab_size is -1"),
        ({"model_type": "gpt2", "add_cross_attention": True}, "attends to an encoder"),
        ({"model_type": "palm"}, "d_model is missing"),
    ],
)  # fmt: skip
def test_configs_that_make_no_decoder_are_refused(values, message):
    with torch.device("meta"), pytest.raises(BadInput, match=message):
        Decoder.of(values)


def test_a_setting_that_nothing_reads_is_refused():
    with pytest.raises(BadInput, match="no key 'n_layers' to set; nearest: n_layer"):
        Decoder.of("gpt2", n_layers=2)
