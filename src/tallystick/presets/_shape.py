"""Helpers for presets: Llama-like configs and patterns of layer kinds."""

from __future__ import annotations

from typing import Any, TypeAlias

Values: TypeAlias = dict[str, Any]
Models: TypeAlias = dict[str, tuple[str, Values]]  # (month of release, config) by preset name

TIED: Values = {"tie_word_embeddings": True}
HALF: Values = {"dtype": "float16"}
FULL: Values = {"dtype": "float32"}


def decoder(  # one argument per size of the design
    model_type: str,
    vocabulary: int,
    d: int,
    inner: int,
    layers: int,
    heads: int,
    key_value_heads: int,
    positions: int,
    **more: Any,
) -> Values:
    """Return the config of a Llama-like model: untied, bfloat16; `more` adds or overrides keys."""
    return {
        "model_type": model_type, "vocab_size": vocabulary, "hidden_size": d, "intermediate_size": inner,
        "num_hidden_layers": layers, "num_attention_heads": heads, "num_key_value_heads": key_value_heads,
        "max_position_embeddings": positions, "tie_word_embeddings": False, "dtype": "bfloat16", **more,
    }  # fmt: skip


def every(other: str, one: str, period: int, layers: int) -> list[str]:
    """Return kinds of layers: the last of each `period` is `other`, those before it are `one`.

    >>> every("full_attention", "sliding_attention", 2, 4)
    ['sliding_attention', 'full_attention', 'sliding_attention', 'full_attention']
    """
    return [other if number % period == 0 else one for number in range(1, layers + 1)]
