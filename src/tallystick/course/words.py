"""The teaching models in words, as a learner is asked about them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_EMBEDDING = "An embedding has a vector of {d_model} numbers for each of {vocab_size} words."
_HEAD = "A linear layer, the head, makes a score for each word{bias}{tie}."
_LAYER = (
    "{layers} attention with {n_heads} heads of {head_dim} numbers without biases, a LayerNorm, an MLP with one hidden"
    " layer of {d_ff} numbers and biases, and a LayerNorm. A LayerNorm has a scale and a shift for each number."
)
_KEYS = (
    "vocab_size", "context_length", "d_model", "n_layers", "n_heads", "head_dim", "d_head", "d_ff", "inputs", "width",
    "depth", "outputs",
)  # fmt: skip

MODELS = {
    "embedding": _EMBEDDING,
    "bare_bones_lm": f"{_EMBEDDING} {_HEAD}",
    "mlp": "Linear layers{biases}: from {inputs} numbers through {depth} hidden layers of {width} numbers to {outputs}.",
    "feed_forward_lm": (
        f"{_EMBEDDING} The vectors of {{context_length}} words side by side go through {{depth}} hidden layers of"
        " {width} numbers. A last layer makes a score for each word. All these layers are linear{biases}."
    ),
    "position_wise_lm": (
        f"{_EMBEDDING} Each vector goes through an MLP with biases: {{depth}} hidden layers of {{width}} numbers, and a"
        f" layer back to {{d_model}} numbers. {_HEAD}"
    ),
    "single_head_attention": (
        "One head of attention makes a query, a key and a value of {d_head} numbers from a vector of {d_model} numbers,"
        " without biases."
    ),
    "multi_head_attention": (
        "Attention has {n_heads} heads. Each makes a query, a key and a value of {head_dim} numbers from a vector of"
        " {d_model} numbers. An output projection joins what the heads give to {d_model} numbers. There are no biases."
    ),
    "transformer_layer": _LAYER.replace("{layers}", "A transformer layer of {d_model} numbers is"),
    "transformer_lm": (
        f"{_EMBEDDING} A second one has a vector for each of {{context_length}} positions."
        f" {_LAYER.replace('{layers}', 'Each of {n_layers} layers has')} {_HEAD}"
    ),
    "rotary_transformer_lm": (
        f"{_EMBEDDING} Positions rotate queries and keys by fixed angles."
        f" {_LAYER.replace('{layers}', 'Each of {n_layers} layers has')} {_HEAD}"
    ),
}

SUMMARIES = {
    "embedding": "a vector for each word",
    "bare_bones_lm": "an embedding and a head",
    "mlp": "linear layers",
    "feed_forward_lm": "the vectors of several words, joined, through linear layers",
    "position_wise_lm": "an embedding, an MLP and a head",
    "single_head_attention": "one query, key and value",
    "multi_head_attention": "several heads, joined by an output projection",
    "transformer_layer": "attention, an MLP and two LayerNorms",
    "transformer_lm": "embeddings of words and positions, layers and a head",
    "rotary_transformer_lm": "the same with rotary positions",
}


def described(model: str, values: Mapping[str, Any]) -> str:
    """Return a teaching model in words, with its sizes by name.

    Args:
        model: its model_type.
        values: its config: flags, and sizes that are stated.

    >>> described("embedding", {"vocab_size": 256, "d_model": 5})
    'An embedding has a vector of d_model numbers for each of vocab_size words.'
    """
    text = MODELS[model]
    unstated = {"head_dim": "d_model / n_heads", "d_ff": "4·d_model", "depth": "1"}
    names = {key: unstated[key] if key in unstated and not values.get(key) else key for key in _KEYS}
    said = text.format(
        **names,
        bias=", with a bias" if values.get("bias") else ", without a bias",
        biases=" with biases" if values.get("bias", True) else " without biases",
        tie=", and its matrix is the embedding's" if values.get("tie_word_embeddings") else "",
    )
    return said.replace("through 1 hidden layers", "through one hidden layer").replace(
        ": 1 hidden layers", ": one hidden layer"
    )
