"""The teaching models against their blueprints, at any sizes; and what each computes against what
it is said to be.
"""

from __future__ import annotations

from typing import Any

import pytest
import sympy
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

import tallystick
from reference import read
from tallystick import architectures, presets
from tallystick.errors import BadInput
from tallystick.models import teaching

SIZE = st.integers(1, 9)
FLAG = st.booleans()


@st.composite
def attention(draw: DrawFn, rotary: SearchStrategy[bool] | None = None, **more: SearchStrategy[Any]) -> dict[str, Any]:
    """Heads that divide the width; of an even size where they may have to turn."""
    heads = draw(SIZE)
    values: dict[str, Any] = {"d_model": 2 * heads * draw(SIZE), "n_heads": heads}
    if draw(FLAG):  # then the heads need not share the width
        values |= {"d_model": draw(SIZE), "head_dim": 2 * draw(SIZE)}
    if rotary is not None:
        values["rotary"] = draw(rotary)
    return {**values, **{key: draw(value) for key, value in more.items()}}


def mlp(values: dict[str, Any]) -> torch.nn.Module:
    return teaching.MLP(**values) if "widths" in values else teaching.MLP.of_depth(**values)


HEAD = {"bias": FLAG, "tie_word_embeddings": FLAG}
INNER = st.one_of(st.none(), SIZE)
CONFIGS: dict[str, SearchStrategy[dict[str, Any]]] = {
    "embedding": st.fixed_dictionaries({"vocab_size": SIZE, "d_model": SIZE}),
    "bare_bones_lm": st.fixed_dictionaries({"vocab_size": SIZE, "d_model": SIZE, **HEAD}),
    "mlp": st.one_of(
        st.fixed_dictionaries({"widths": st.lists(SIZE, min_size=2, max_size=6), "bias": FLAG}),
        st.fixed_dictionaries({"inputs": SIZE, "width": SIZE, "depth": SIZE, "outputs": SIZE, "bias": FLAG}),
    ),
    "feed_forward_lm": st.fixed_dictionaries(
        {"vocab_size": SIZE, "context_length": SIZE, "d_model": SIZE, "width": SIZE, "depth": SIZE, "bias": FLAG}
    ),
    "position_wise_lm": st.fixed_dictionaries(
        {"vocab_size": SIZE, "d_model": SIZE, "width": SIZE, "depth": SIZE, **HEAD}
    ),
    "single_head_attention": st.fixed_dictionaries({"d_model": SIZE, "d_head": SIZE}),
    "multi_head_attention": attention(FLAG),
    "transformer_layer": attention(FLAG, d_ff=INNER),
    "transformer_lm": attention(vocab_size=SIZE, context_length=SIZE, n_layers=SIZE, d_ff=INNER, **HEAD),
    "rotary_transformer_lm": attention(vocab_size=SIZE, n_layers=SIZE, d_ff=INNER, **HEAD),
}


def built(model_type: str, values: dict[str, Any]) -> torch.nn.Module:
    if model_type == "mlp":
        return mlp(values)
    return getattr(teaching, architectures.find(model_type).class_name)(**values)


def test_each_type_is_drawn():
    assert set(CONFIGS) == set(architectures.TEACHING)


@pytest.mark.parametrize("model_type", CONFIGS)
@settings(max_examples=30, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_blueprint_formula_and_module_agree_at_any_sizes(model_type: str, data: st.DataObject):
    values = data.draw(CONFIGS[model_type])
    with torch.device("meta"):
        true = read(built(model_type, values))
    ledger = tallystick.count({"model_type": model_type, **values})
    assert {entry.name: tuple(map(int, entry.shape)) for entry in ledger.entries} == true.shapes
    assert {frozenset(tie.names) for tie in ledger.ties} == true.ties
    assert true.buffers == {}
    formula = tallystick.formula(ledger)
    assert int(sympy.sympify(formula.expression).subs(formula.symbols)) == ledger.total == true.total


# Worked out by hand, as a course does: products of the sizes that `tallystick presets` has.
PRESETS = {
    "embedding": 256 * 5,
    "bare-bones-lm": 1000 * 64 + 64 * 1000 + 1000,
    "mlp": (784 * 128 + 128) + (128 * 128 + 128) + (128 * 10 + 10),
    "feed-forward-lm": 1000 * 64 + (4 * 64 * 128 + 128) + (128 * 128 + 128) + (128 * 1000 + 1000),
    "position-wise-lm": 256 * 5 + (5 * 16 + 16) + (16 * 5 + 5),
    "single-head-attention": 3 * 64 * 16,
    "multi-head-attention": 4 * 64 * 64,
    "transformer-layer": 4 * 64 * 64 + (64 * 256 + 256) + (256 * 64 + 64) + 2 * (64 + 64),
    "transformer-lm": 1000 * 64 + 32 * 64 + 2 * 49_728 + 64 * 1000,
    "rotary-transformer-lm": 1000 * 64 + 2 * 49_728 + 64 * 1000,
}


def test_every_preset_of_a_teaching_model_is_worked_out():
    types = {name: values["model_type"] for name, values in presets.PRESETS.items()}
    assert set(PRESETS) == {name for name, model_type in types.items() if model_type in architectures.TEACHING}


@pytest.mark.parametrize("name", PRESETS)
def test_the_presets_by_hand(name: str):
    assert tallystick.count(name).total == PRESETS[name]


def test_the_closed_forms_as_they_are_taught():
    assert tallystick.formula("bare-bones-lm").expression == "2*vocab_size*d_model + vocab_size"
    assert tallystick.formula("multi-head-attention").expression == "4*d_model**2"
    tied = tallystick.formula("bare-bones-lm", tie_word_embeddings=True, bias=False)
    assert tied.expression == "vocab_size*d_model"


def test_the_closed_form_of_one_depth_gives_the_count_of_another():
    formula = tallystick.formula("mlp")
    deeper = tallystick.count("mlp", depth=7, width=5).total
    assert int(sympy.sympify(formula.expression).subs({**formula.symbols, "depth": 7, "width": 5})) == deeper


def test_the_roles_are_those_of_the_parts():
    assert tallystick.count("single-head-attention").by("role") == {"attention": 3072}
    assert tallystick.count("mlp").by("role") == {"mlp": 118_282}
    assert tallystick.count("feed-forward-lm").by("role")["head"] == 128 * 1000 + 1000


@pytest.mark.parametrize("name", ["transformer-lm", "rotary-transformer-lm"])
def test_the_layers_of_a_transformer_say_how_they_attend(name: str):
    (layers,) = tallystick.count(name).attending
    assert (layers.layers, layers.heads.queries, layers.heads.keys, layers.heads.size) == (2, 4, 4, 16)


# A course's notebook, its sizes by its own names: what it prints.
NOTEBOOK = [
    ("embedding", {"n_vocab": 256, "emb_dim": 5}, 1_280),
    ("embedding", {"n_vocab": 50_000, "emb_dim": 2_048}, 102_400_000),
    ("bare-bones-lm", {"n_vocab": 256, "emb_dim": 5, "tie_weights": True, "bias": False}, 1_280),
    ("bare-bones-lm", {"n_vocab": 256, "emb_dim": 5, "tie_weights": True, "bias": True}, 1_536),
    ("bare-bones-lm", {"n_vocab": 256, "emb_dim": 5, "tie_weights": False, "bias": False}, 2_560),
    ("mlp", {"inputs": 5, "n_hidden": 16, "depth": 1, "outputs": 5}, 181),
    ("position-wise-lm", {"n_vocab": 256, "emb_dim": 5, "n_hidden": 16}, 1_461),
    ("single-head-attention", {"emb_dim": 5, "head_dim": 256}, 3_840),
    ("multi-head-attention", {"d_model": 5, "head_dim": 256, "n_heads": 2}, 10_240),
    ("transformer-layer", {"emb_dim": 5, "head_dim": 256, "n_heads": 2, "dim_feedforward": 5}, 10_320),
    (
        "transformer-lm",
        {
            "n_vocab": 256, "max_len": 50, "emb_dim": 5, "n_hidden": 16, "head_dim": 256, "n_heads": 2, "n_layers": 1,
            "tie_weights": True,
        },
        11_971,
    ),
    (
        "rotary-transformer-lm",
        {
            "n_vocab": 256, "emb_dim": 5, "n_hidden": 16, "head_dim": 256, "n_heads": 2, "n_layers": 1,
            "tie_weights": True,
        },
        11_721,
    ),
]  # fmt: skip


@pytest.mark.parametrize(("name", "sizes", "figure"), NOTEBOOK)
def test_the_figures_of_a_course(name: str, sizes: dict[str, Any], figure: int):
    assert tallystick.count(name, **sizes).total == figure
    formula = tallystick.formula(name, **sizes)
    assert eval(formula.expression, dict(formula.symbols)) == figure


def test_two_sizes_of_one_value_stay_two_sizes_in_the_formula():
    sizes = {"emb_dim": 5, "head_dim": 256, "n_heads": 2, "dim_feedforward": 5}
    formula = tallystick.formula("transformer-layer", **sizes)
    other = tallystick.count("transformer-layer", **{**sizes, "dim_feedforward": 7}).total
    assert eval(formula.expression, {**formula.symbols, "d_ff": 7}) == other


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"model_type": "mlp", "widths": [4]}, "widths has one entry"),
        ({"model_type": "mlp", "widths": [4, 0]}, "widths_1 is 0, expected a positive integer"),
        ({"model_type": "mlp", "widths": 4}, "widths is 4, expected a list of positive integers"),
        ({"model_type": "mlp", "widths": [4, 2], "depth": 3}, "widths and depth set the same thing"),
        ({"model_type": "mlp", "inputs": 4, "width": 8, "depth": 3}, "outputs is missing"),
        ({"model_type": "multi_head_attention", "d_model": 6, "n_heads": 4}, "is not divisible by n_heads = 4"),
        ({"model_type": "multi_head_attention", "d_model": 6, "n_heads": 2, "rotary": True}, "3 is odd"),
        (
            {"model_type": "transformer_layer", "d_model": 6, "n_heads": 2, "head_dim": 5, "rotary": True},
            "head_dim = 5",
        ),
    ],
)
def test_sizes_that_make_no_model(values: dict[str, Any], message: str):
    with pytest.raises(BadInput, match=message):
        tallystick.count(values)
    if "n_heads" in values:
        with pytest.raises(BadInput, match=message):
            built(values["model_type"], {key: value for key, value in values.items() if key != "model_type"})


# -- what they compute ----------------------------------------------------------------------------

LANGUAGE_MODELS = {
    "position_wise_lm": {"vocab_size": 11, "d_model": 8, "width": 5},
    "bare_bones_lm": {"vocab_size": 11, "d_model": 8},
    "feed_forward_lm": {"vocab_size": 11, "context_length": 3, "d_model": 8, "width": 5, "depth": 2},
    "transformer_lm": {"vocab_size": 11, "context_length": 6, "d_model": 8, "n_layers": 2, "n_heads": 2},
    "rotary_transformer_lm": {"vocab_size": 11, "d_model": 8, "n_layers": 2, "n_heads": 2},
}


@pytest.mark.parametrize("model_type", LANGUAGE_MODELS)
def test_blueprint_and_module_agree_on_what_is_left_out(model_type: str):
    values = LANGUAGE_MODELS[model_type]
    true = sum(parameter.numel() for parameter in built(model_type, values).parameters())
    assert tallystick.count({"model_type": model_type, **values}).total == true


@pytest.mark.parametrize("model_type", LANGUAGE_MODELS)
def test_a_language_model_sees_no_later_token(model_type: str):
    torch.manual_seed(0)
    model = built(model_type, LANGUAGE_MODELS[model_type])
    tokens = torch.randint(0, 11, (2, 6))
    changed = tokens.clone()
    changed[:, 4] = (changed[:, 4] + 1) % 11
    with torch.no_grad():
        logits, others = model(tokens), model(changed)
    assert logits.shape == (2, 6, 11)
    assert torch.equal(logits[:, :4], others[:, :4])
    assert not torch.allclose(logits[:, 4], others[:, 4])


def test_a_feed_forward_model_sees_its_window_and_nothing_before():
    torch.manual_seed(0)
    model = teaching.FeedForwardLM(11, 3, 8, width=32)
    tokens = torch.tensor([[1, 2, 3, 4, 5, 6]])
    with torch.no_grad():
        before = model(tokens)
        tokens[0, 1] = 9
        after = model(tokens)
    changed = [bool((before[0, t] != after[0, t]).any()) for t in range(6)]
    assert changed == [False, True, True, True, False, False]
    # The window in its order: the embeddings of three tokens, oldest first.
    window = model.embedding(torch.tensor([9, 3, 4])).flatten()
    assert torch.allclose(model.mlp(window), after[0, 3], atol=1e-6)


@pytest.mark.parametrize(
    ("model_type", "embedding"),
    [("bare_bones_lm", "embedding"), ("position_wise_lm", "embedding"), ("rotary_transformer_lm", "token_embedding")],
)
def test_the_gradients_of_both_uses_add_up_in_a_tied_matrix(model_type: str, embedding: str):
    torch.manual_seed(0)
    values = LANGUAGE_MODELS[model_type]
    tied = built(model_type, {**values, "tie_word_embeddings": True}).double()
    untied = built(model_type, {**values, "tie_word_embeddings": False}).double()
    untied.load_state_dict(tied.state_dict())
    tokens = torch.randint(0, 11, (2, 6))
    for model in (tied, untied):
        logits = model(tokens[:, :-1])
        torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten()).backward()
    both = getattr(untied, embedding).weight.grad + untied.head.weight.grad
    assert tied.head.weight is getattr(tied, embedding).weight
    assert torch.allclose(tied.head.weight.grad, both, rtol=1e-10, atol=1e-14)
    assert untied.head.weight.grad.abs().sum() > 0
    assert getattr(untied, embedding).weight.grad.abs().sum() > 0


def test_heads_of_any_size_are_single_heads_side_by_side():
    torch.manual_seed(0)
    multi = teaching.MultiHeadAttention(5, 2, 16)
    x, parts = torch.randn(2, 4, 5), []
    for rows in (slice(0, 16), slice(16, 32)):
        head = teaching.SingleHeadAttention(5, 16)
        head.load_state_dict({f"{n}.weight": getattr(multi, n).weight[rows] for n in ("query", "key", "value")})
        parts.append(head(x))
    assert torch.allclose(multi(x), multi.output(torch.cat(parts, dim=-1)), atol=1e-6)


def test_one_of_many_heads_is_a_single_head():
    torch.manual_seed(0)
    single, multi = teaching.SingleHeadAttention(8, 8), teaching.MultiHeadAttention(8, 1)
    multi.load_state_dict({**single.state_dict(), "output.weight": torch.eye(8)})
    x = torch.randn(2, 5, 8)
    assert torch.allclose(single(x), multi(x), atol=1e-6)


def test_two_heads_are_two_single_heads_side_by_side():
    torch.manual_seed(0)
    multi = teaching.MultiHeadAttention(8, 2)
    multi.output.weight.data = torch.eye(8)
    x, parts = torch.randn(2, 5, 8), []
    for rows in (slice(0, 4), slice(4, 8)):
        head = teaching.SingleHeadAttention(8, 4)
        head.load_state_dict({f"{n}.weight": getattr(multi, n).weight[rows] for n in ("query", "key", "value")})
        parts.append(head(x))
    assert torch.allclose(multi(x), torch.cat(parts, dim=-1), atol=1e-6)


def test_attention_is_that_of_torch():
    torch.manual_seed(0)
    query, key, value = torch.randn(3, 2, 4, 5, 6)
    ours = teaching.attend(query, key, value)
    assert torch.allclose(
        ours, torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True), atol=1e-6
    )


def test_rotary_positions_add_no_parameter_and_turn_by_distance_alone():
    plain, rotary = teaching.MultiHeadAttention(8, 2), teaching.MultiHeadAttention(8, 2, rotary=True)
    assert plain.state_dict().keys() == rotary.state_dict().keys()
    learned, turned = tallystick.count("transformer-lm"), tallystick.count("rotary-transformer-lm")
    assert learned.total - turned.total == 32 * 64  # the matrix of positions, and nothing else
    torch.manual_seed(0)
    query, key = torch.randn(2, 1, 8, dtype=torch.float64).expand(2, 6, 8)  # the same at every position
    scores = teaching.rotated(query) @ teaching.rotated(key).T
    for distance in range(-5, 6):
        diagonal = scores.diagonal(distance)
        assert torch.allclose(diagonal, diagonal[:1].expand_as(diagonal))
    assert torch.allclose(scores[0, 0], query[0] @ key[0])
    assert not torch.allclose(scores[0, 0], scores[1, 0])


def test_only_with_rotary_positions_does_attention_see_the_order_of_what_was_before():
    torch.manual_seed(0)
    plain, rotary = teaching.MultiHeadAttention(8, 2), teaching.MultiHeadAttention(8, 2, rotary=True)
    x = torch.randn(1, 4, 8)
    swapped = x[:, [1, 0, 2, 3]]
    assert torch.allclose(plain(x)[:, -1], plain(swapped)[:, -1], atol=1e-6)
    assert not torch.allclose(rotary(x)[:, -1], rotary(swapped)[:, -1], atol=1e-3)


def test_rotary_positions_are_those_of_transformers():
    from transformers.models.llama.modeling_llama import LlamaConfig, LlamaRotaryEmbedding, apply_rotary_pos_emb

    config = LlamaConfig(hidden_size=16, num_attention_heads=2, max_position_embeddings=32)
    torch.manual_seed(0)
    query, key = torch.randn(2, 1, 2, 7, 8)
    cos, sin = LlamaRotaryEmbedding(config)(query, torch.arange(7)[None])
    theirs = apply_rotary_pos_emb(query, key, cos, sin)
    for ours, his in zip((teaching.rotated(query), teaching.rotated(key)), theirs, strict=True):
        assert torch.allclose(ours, his, atol=1e-5)


def test_a_layer_norms_what_it_gives_and_adds_no_residual():
    torch.manual_seed(0)
    layer = teaching.TransformerLayer(8, 2)
    for parameter in layer.attention.parameters():
        parameter.data.zero_()
    x = torch.randn(2, 3, 8)
    out = layer(x)
    assert torch.equal(out, layer(torch.zeros_like(x)))  # without a residual nothing of x is left
    assert torch.allclose(out.mean(-1), torch.zeros(2, 3), atol=1e-6)


def test_more_tokens_than_positions_are_refused_in_one_line():
    with pytest.raises(BadInput, match="7 tokens are more than context_length = 6"):
        built("transformer_lm", LANGUAGE_MODELS["transformer_lm"])(torch.zeros(1, 7, dtype=torch.long))
