"""A wrong count is explained by the mistake that gives it at every size, and by none else."""

from __future__ import annotations

import pytest

from tallystick.course import judge

# The answer, and the mistake in it: each was made by hand.
MISTAKES = [
    ("bare-bones-lm", lambda V, d: 2 * V * d, {}, "head.bias is left out: V too few"),
    ("bare-bones-lm", lambda V, d: V * d + V, {}, "embedding.weight or head.weight is left out: V·d too few"),
    (
        "bare-bones-lm",
        lambda n_vocab, emb_dim: 2 * n_vocab * emb_dim + n_vocab,
        {"tie_weights": True},
        "head.weight is tied, which adds no parameters, and is counted: n_vocab·emb_dim too many",
    ),
    (
        "transformer-lm",
        lambda V, T, d, L: (2 * V + 2 * T) * d + L * (12 * d**2 + 9 * d),
        {},
        "position_embedding.weight is counted twice: T·d too many",
    ),
    (
        "position-wise-lm",
        lambda n_vocab, emb_dim, n_hidden: n_vocab * emb_dim + 2 * emb_dim * n_hidden,
        {},
        "the biases of the linear layers are left out: n_hidden + emb_dim too few",
    ),
    (
        "mlp",
        lambda inputs, width, depth, outputs: (inputs + 1) * width + depth * (width + 1) * width + (width + 1) * outputs,
        {},
        "the layers are counted depth times, and there are depth - 1",
    ),
    (
        "feed-forward-lm",
        lambda vocab_size, context_length, d_model, width: vocab_size * (d_model + width + 1) + width * (d_model + 1),
        {},
        "mlp.layers.0.weight is counted without the factor context_length",
    ),
    (
        "multi-head-attention",
        lambda d_model: d_model**2,
        {},
        "the projections of attention are 4 matrices of one size, of which 1 is counted: the factor 4 is missing",
    ),
    (
        "multi-head-attention",
        lambda d_model, n_heads: n_heads * 3 * d_model**2 + d_model**2,
        {},
        "the query, key and value projections are multiplied by n_heads once too often",
    ),
    (
        "multi-head-attention",
        lambda emb_dim, head_dim, n_heads: 3 * emb_dim * head_dim + n_heads * head_dim * emb_dim,
        {},
        "the query, key and value projections are counted without the factor n_heads",
    ),
    (
        "multi-head-attention",
        lambda emb_dim, head_dim, n_heads: 3 * n_heads * emb_dim * head_dim,
        {},
        "the projections of attention are 4 matrices of one size, of which 3 are counted",
    ),
    (
        "transformer-layer",
        lambda d_model, d_ff: 4 * d_model**2 + 2 * d_model * d_ff + d_ff + d_model + 2 * d_model,
        {},
        "the shifts of the norms are left out: 2·d_model too few",
    ),
    (
        "transformer-layer",
        lambda d_model, d_ff: 4 * d_model**2 + 2 * d_model * d_ff,
        {},
        "the biases and the norms are left out: 5·d_model + d_ff too few",
    ),
    (
        "transformer-lm",
        lambda vocab_size, max_len, d_model, n_layers: (2 * vocab_size + max_len) * d_model + 12 * d_model**2 + 9 * d_model,
        {},
        "the layers are counted for one of n_layers only",
    ),
    (
        "transformer-lm",
        lambda vocab_size, d_model, n_layers: vocab_size * d_model + n_layers * (12 * d_model**2 + 9 * d_model),
        {},
        "position_embedding.weight is left out: context_length·d_model too few; "
        "token_embedding.weight or head.weight is left out: vocab_size·d_model too few",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("model", "answer", "flags", "diagnosis"), MISTAKES, ids=[one[-1][:40] for one in MISTAKES])
def test_a_mistake_is_named(model, answer, flags, diagnosis):
    judgement = judge(model, answer, **flags)
    assert sorted(judgement.diagnosis.split("; ")) == sorted(diagnosis.split("; "))
    assert judgement.hints[2] == judgement.diagnosis


def test_hints_go_from_the_part_to_its_shape_to_the_term():
    judgement = judge("bare-bones-lm", lambda V, d: 2 * V * d)
    assert judgement.hints == (
        "look at head.bias: too few there",
        "the shapes: head.bias (V)",
        "head.bias is left out: V too few",
    )
    assert str(judgement).splitlines()[1] == "hint 1 of 3: look at head.bias: too few there"


def test_a_count_that_no_mistake_explains_gets_the_model_part_by_part():
    judgement = judge("transformer-lm", lambda vocab_size, d_model: 17 * vocab_size + d_model)
    assert judgement.diagnosis == ""
    assert judgement.hints[0] == (
        "count part by part: token_embedding, position_embedding, layers.attention, layers.attention_norm, layers.mlp, "
        "layers.mlp_norm, head"
    )
    assert "layers.attention 4·n_layers·d_model²" in judgement.hints[2]


def test_a_coincidence_at_some_sizes_is_no_mistake():
    """Where V = 2, 2·V·d + 2 is right; at other sizes it is not."""
    assert judge("bare-bones-lm", lambda V, d: 2 * V * d + 2).diagnosis == ""


def test_a_right_answer_has_no_hints():
    assert judge("embedding", lambda V, d: V * d).hints == ()
