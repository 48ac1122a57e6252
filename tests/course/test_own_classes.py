"""A learner's own classes are judged as the teaching models are: with the same sizes and words."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tallystick.course import judge
from tallystick.errors import BadInput
from tallystick.models import teaching

# The models of a course's notebook, in its names; and its functions, as a learner completes them.


class Embedder(nn.Module):
    def __init__(self, n_vocab, emb_dim):
        super().__init__()
        self.table = nn.Embedding(n_vocab, emb_dim)


class BareBonesLM(nn.Module):
    def __init__(self, n_vocab, emb_dim, tie_weights=True, bias=False):
        super().__init__()
        self.word_to_embedding = nn.Embedding(n_vocab, emb_dim)
        self.lm_head = nn.Linear(emb_dim, n_vocab, bias=bias)
        if tie_weights:
            self.lm_head.weight = self.word_to_embedding.weight


class Hidden(nn.Module):
    def __init__(self, emb_dim, n_hidden):
        super().__init__()
        self.model = nn.Sequential(nn.Linear(emb_dim, n_hidden), nn.ReLU(), nn.Linear(n_hidden, emb_dim))


class FeedForwardLM(BareBonesLM):
    def __init__(self, n_vocab, emb_dim, n_hidden, tie_weights=True):
        super().__init__(n_vocab, emb_dim, tie_weights)
        self.model = Hidden(emb_dim, n_hidden)


class OneHead(nn.Module):
    def __init__(self, emb_dim, head_dim):
        super().__init__()
        self.get_query, self.get_key, self.get_value = (nn.Linear(emb_dim, head_dim, bias=False) for _ in range(3))


class SelfAttention(nn.Module):
    def __init__(self, emb_dim, head_dim, n_heads):
        super().__init__()
        self.heads = nn.ModuleList(OneHead(emb_dim, head_dim) for _ in range(n_heads))
        self.to_output = nn.Linear(n_heads * head_dim, emb_dim, bias=False)


class Layer(nn.Module):
    def __init__(self, emb_dim, head_dim, n_heads, dim_feedforward):
        super().__init__()
        self.self_attention = SelfAttention(emb_dim, head_dim, n_heads)
        self.mlp = Hidden(emb_dim, dim_feedforward)
        self.norm_after_attn, self.norm_after_mlp = nn.LayerNorm(emb_dim), nn.LayerNorm(emb_dim)


class TransformerLM(BareBonesLM):
    def __init__(self, n_vocab, max_len, emb_dim, n_hidden, head_dim=256, n_heads=2):
        super().__init__(n_vocab, emb_dim)
        self.pos_to_embedding = nn.Embedding(max_len, emb_dim)
        self.model = Layer(emb_dim, head_dim, n_heads, n_hidden)


def num_params_for_embedding(n_vocab, emb_dim):
    return n_vocab * emb_dim


def num_parameters_for_mlp(emb_dim, n_hidden):
    return (emb_dim * n_hidden + n_hidden) + (n_hidden * emb_dim + emb_dim)


def num_parameters_for_mlp_lm(n_vocab, emb_dim, n_hidden):
    return num_parameters_for_mlp(emb_dim, n_hidden) + num_params_for_embedding(n_vocab, emb_dim)


def num_parameters_for_self_attention(emb_dim, head_dim=256, n_heads=2):
    return n_heads * 3 * emb_dim * head_dim + head_dim * n_heads * emb_dim


def num_parameters_for_transformer(emb_dim, dim_feedforward, head_dim, n_heads):
    attention = num_parameters_for_self_attention(emb_dim, head_dim, n_heads)
    return attention + num_parameters_for_mlp(emb_dim, dim_feedforward) + 2 * (emb_dim + emb_dim)


def num_parameters_for_transformer_lm(n_vocab, max_len, emb_dim, n_hidden, head_dim, n_heads):
    return (
        num_parameters_for_transformer(emb_dim, dim_feedforward=n_hidden, head_dim=head_dim, n_heads=n_heads)
        + num_params_for_embedding(n_vocab=n_vocab, emb_dim=emb_dim)
        + num_params_for_embedding(n_vocab=max_len, emb_dim=emb_dim)
    )


NOTEBOOK = [
    ("embedding", Embedder, num_params_for_embedding),
    ("mlp", Hidden, num_parameters_for_mlp),
    ("position-wise-lm", FeedForwardLM, num_parameters_for_mlp_lm),
    ("multi-head-attention", SelfAttention, num_parameters_for_self_attention),
    ("transformer-layer", Layer, num_parameters_for_transformer),
]


@pytest.mark.parametrize(("name", "own", "answer"), NOTEBOOK, ids=[name for name, *_ in NOTEBOOK])
def test_a_class_and_the_teaching_model_give_the_same_judgement(name, own, answer):
    assert judge(name, answer) == judge(own, answer)
    assert judge(own, answer).right
    wrong = judge(own, scaled(answer))
    assert wrong.sentence == judge(name, scaled(answer)).sentence
    assert wrong.trials == judge(name, scaled(answer)).trials
    assert not wrong.right


def scaled(answer):
    """The answer with emb_dim taken one too large."""

    class Scaled:
        def __call__(self, **sizes):
            return answer(**{**sizes, "emb_dim": sizes["emb_dim"] + 1})

    import inspect

    found = Scaled()
    found.__signature__ = inspect.signature(answer)
    return found


def test_the_language_model_of_one_layer():
    assert judge(TransformerLM, num_parameters_for_transformer_lm).right
    tied = {"at": {"n_layers": 1}, "tie_weights": True}
    assert judge("transformer-lm", num_parameters_for_transformer_lm, **tied).right
    assert not judge("transformer-lm", num_parameters_for_transformer_lm, tie_weights=True).right


def test_arguments_that_are_not_named_keep_their_defaults():
    assert judge(TransformerLM, lambda n_vocab, max_len, emb_dim, n_hidden: (n_vocab + max_len) * emb_dim
                 + 4 * 512 * emb_dim + num_parameters_for_mlp(emb_dim, n_hidden) + 4 * emb_dim).right  # fmt: skip
    assert judge(BareBonesLM, lambda n_vocab, emb_dim: n_vocab * emb_dim).right
    assert judge(BareBonesLM, lambda n_vocab, emb_dim: 2 * n_vocab * emb_dim, tie_weights=False).right


def test_a_flag_that_the_answer_names_is_drawn():
    def right(n_vocab, emb_dim, tie_weights, bias):
        return n_vocab * emb_dim * (1 if tie_weights else 2) + n_vocab * bias

    assert judge(BareBonesLM, right).right
    twice = judge(BareBonesLM, lambda n_vocab, emb_dim, tie_weights, bias: 2 * n_vocab * emb_dim + n_vocab * bias)
    assert twice.diagnosis.startswith("lm_head.weight is tied, which adds no parameters, and is counted")


def test_the_learner_may_use_other_names_than_the_class():
    assert judge(SelfAttention, lambda d_model, num_heads, d_head: 4 * d_model * num_heads * d_head).right
    assert judge(Hidden, lambda d, hidden_dim: 2 * d * hidden_dim + hidden_dim + d).right


@pytest.mark.parametrize("own", [teaching.MLP, teaching.MultiHeadAttention, teaching.RotaryTransformerLM])
def test_the_classes_of_the_teaching_models_are_the_teaching_models(own):
    names = {"MLP": "mlp", "MultiHeadAttention": "multi-head-attention", "RotaryTransformerLM": "rotary-transformer-lm"}
    assert judge(own, lambda d_model: d_model) == judge(names[own.__name__], lambda d_model: d_model)


def test_a_function_that_builds_a_model_is_judged():
    def build(n_embd, n_layer, activation="gelu"):
        return nn.ModuleList(nn.Linear(n_embd, n_embd, bias=activation == "gelu") for _ in range(n_layer))

    assert judge(build, lambda n_embd, n_layer: n_layer * (n_embd**2 + n_embd)).right
    assert judge(build, lambda n_embd, n_layer: n_layer * n_embd**2, activation="relu").right
    assert judge(build, lambda n_embd: 3 * (n_embd**2 + n_embd), at={"n_layer": 3}).right


def test_an_argument_that_means_no_size_is_said_in_one_line():
    assert judge(Hidden, lambda emb_dim, n_hiden: 0).sentence == (
        "Hidden has no n_hiden; nearest: n_hidden; name the arguments as emb_dim, n_hidden"
    )


@pytest.mark.parametrize(
    ("model", "given", "words"),
    [
        (Hidden(2, 3), {}, "Hidden(…) is built already, at one size: pass the class Hidden itself"),
        (Hidden, {"tied": True}, "Hidden has no flag tied; it has none"),
        (Hidden, {"at": {"n_layers": 2}}, "Hidden has no n_layers; it has emb_dim, n_hidden"),
        ("mlp", {"at": {"layers": 2}}, "mlp has no layers; it has widths"),
        (lambda emb_dim: torch.zeros(emb_dim, 2), {}, "returned a Tensor, expected an nn.Module"),
    ],
)
def test_models_and_sizes_that_there_are_not(model, given, words):
    with pytest.raises(BadInput) as error:
        judge(model, lambda emb_dim: 0, **given)
    assert words in str(error.value)
    assert "\n" not in str(error.value)
