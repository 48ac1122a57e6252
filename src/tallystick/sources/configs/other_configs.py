"""Translate Meta's and Mistral's ``params.json`` and litgpt's ``model_config.yaml``.

Each config is translated to Hugging Face's keys of a type with the same parameter count. A key that
is unknown and may change a tensor is refused.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from tallystick.core.config import TIE
from tallystick.errors import BadInput, quoted, shown

LLAMA_ROWS = 32_000  # the vocabulary of Llama 1 and 2, for which Meta's files write vocab_size -1
LARGEST_MULTIPLIER = 1000.0

# Keys of params.json: _RUNNING change no tensor, _PARAMS do and are read.
_RUNNING = frozenset(
    [
        "norm_eps",
        "rope_theta",
        "use_scaled_rope",
        "rope_scale_factor",
        "high_freq_factor",
        "rope_scaling",
        "yarn",
        "max_seq_len",
        "max_batch_size",
        "max_seqlen",
        "max_position_embeddings",
        "max_model_len",
        "sliding_window",
        "dtype",
        "torch_dtype",
        "dropout",
        "causal",
        "llama_4_scaling",
    ]
)
_PARAMS = frozenset(
    [
        "dim",
        "n_layers",
        "n_heads",
        "n_kv_heads",
        "head_dim",
        "hidden_dim",
        "multiple_of",
        "ffn_dim_multiplier",
        "vocab_size",
        "moe",
        "tied_embeddings",
        "model_type",
    ]
)
_DTYPES = ("dtype", "torch_dtype")


class Translated(NamedTuple):
    """A config in Hugging Face's keys."""

    values: dict[str, Any]
    overrides: dict[str, Any]  # the overrides that are still to be applied
    notes: tuple[str, ...]


def translated(values: Mapping[str, Any], overrides: Mapping[str, Any], source: str, *, litgpt: bool) -> Translated:
    """Translate a config to Hugging Face's keys.

    Args:
        values: the config.
        overrides: the user's overrides, in the config's own keys.
        source: the user's name for the config, for messages.
        litgpt: whether the keys are litgpt's, not those of ``params.json``.

    Raises:
        BadInput: if a size is not a positive integer, or an unread key may change a tensor.
    """
    stated = {**values, **overrides}
    translate = _from_litgpt if litgpt else _from_params
    made, notes = translate(stated, source)
    unread = [key for key in overrides if litgpt and key not in {*values, *_DTYPES}]
    if unread:
        raise BadInput(f"{source} has no {', '.join(unread)} to set", code="unknown-key")
    kept = {key: one for key, one in overrides.items() if key in _DTYPES}
    return Translated({key: one for key, one in made.items() if one is not None}, kept, notes)


# -- Meta's and Mistral's -------------------------------------------------------------------------


def _from_params(stated: Mapping[str, Any], source: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    kind = stated.get("model_type", "transformer")
    strange = [str(key) for key in stated if key not in _RUNNING | _PARAMS]
    if kind != "transformer" or strange:
        what = f"model_type {shown(kind)}" if kind != "transformer" else ", ".join(map(quoted, strange[:5]))
        raise BadInput(
            f"{source} is a params.json of Meta or Mistral with {what}, which is not supported: name the"
            " weights, or the model's config.json from Hugging Face",
            code="unsupported",
        )
    dim, heads = _size(stated, "dim", source), _size(stated, "n_heads", source)
    rows, notes = stated.get("vocab_size", -1), []
    if rows == -1:
        rows = LLAMA_ROWS
        notes.append(
            f"vocab_size -1 means the tokenizer's size: assumed {rows:,}, as in Llama 1 and 2; change it with"
            " --set vocab_size=…"
        )
    tie = stated.get("tied_embeddings")
    if tie is None:
        tie = "dropout" in stated  # llama2.c's arguments; its head is always tied
        if not tie and stated.get("hidden_dim") is None:  # Meta's; the small Llama 3.2 models are tied
            notes.append("its config does not mention tying: the head is counted as separate")
    made = {
        "model_type": "llama",
        "vocab_size": rows,
        "hidden_size": dim,
        "intermediate_size": _hidden(stated, dim, source),
        "num_hidden_layers": _size(stated, "n_layers", source),
        "num_attention_heads": heads,
        "num_key_value_heads": _size(stated, "n_kv_heads", source, heads),
        "head_dim": stated.get("head_dim"),
        TIE: tie,
    }
    if "hidden_dim" in stated and "multiple_of" not in stated:
        made["model_type"] = "mistral"
    moe = stated.get("moe")
    if moe is not None:
        if not isinstance(moe, Mapping):
            raise BadInput(f"{source}: moe is {shown(moe)}, expected an object with num_experts", code="bad-value")
        made |= {
            "model_type": "mixtral",
            "num_local_experts": _size(moe, "num_experts", f"{source}: moe"),
            "num_experts_per_tok": _size(moe, "num_experts_per_tok", f"{source}: moe"),
        }
    return made, tuple(notes)


def _hidden(stated: Mapping[str, Any], dim: int, source: str) -> int:
    """Return the MLP's width, computed as Meta's code does if the config does not state it.

    Source: ``FeedForward`` in github.com/meta-llama/llama, llama/model.py.
    """
    if stated.get("hidden_dim") is not None:
        return _size(stated, "hidden_dim", source)
    hidden, by = int(2 * 4 * dim / 3), stated.get("ffn_dim_multiplier")
    if by is not None:
        if isinstance(by, bool) or not isinstance(by, int | float) or not 0 < by <= LARGEST_MULTIPLIER:
            raise BadInput(
                f"{source}: ffn_dim_multiplier is {shown(by)}, expected a number such as 1.3", code="bad-value"
            )
        hidden = int(by * hidden)
    multiple = _size(stated, "multiple_of", source, 256)
    return multiple * math.ceil(hidden / multiple)


# -- litgpt's -------------------------------------------------------------------------------------

# litgpt's MLP class -> the model type that has such an MLP.
_LITGPT = {"LLaMAMLP": "llama", "LLaMAMoE": "mixtral", "GptNeoxMLP": "gpt_neox"}
# Other keys that change tensors, with the only values that these types support. Absent keys count
# as those.
_PLAIN: dict[str, Any] = {
    "norm_qk": False, "post_attention_norm": False, "post_mlp_norm": False, "shared_attention_norm": False,
    "lm_head_bias": False, "norm_1": True, "norm_2": True, "latent_attention": None, "n_shared_expert": None,
    "first_k_dense_replace": None, "moe_intermediate_size": None,
}  # fmt: skip


def _from_litgpt(stated: Mapping[str, Any], source: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    mlp = stated["mlp_class_name"]
    kind = _LITGPT.get(mlp) if isinstance(mlp, str) else None
    neox = kind == "gpt_neox"
    expected = {**_PLAIN, "norm_class_name": "LayerNorm" if neox else "RMSNorm", "bias": neox}
    odd = next((key for key, plain in expected.items() if stated.get(key, plain) != plain), None)
    if stated.get("attn_bias") and kind == "llama":
        kind = "qwen2"  # biases on the query, key and value projections only
    elif stated.get("attn_bias"):
        odd = "attn_bias"
    if kind is None or odd:
        what = f"{odd} {shown(stated.get(odd))}" if kind and odd else f"mlp_class_name {shown(mlp)}"
        raise BadInput(
            f"{source} is litgpt's config of {quoted(stated.get('name', 'a model'))} with {what}, which is not"
            " supported: name lit_model.pth in its folder, or the model's config.json from Hugging Face",
            code="unsupported",
        )
    heads = _size(stated, "n_head", source)
    groups, width = _size(stated, "n_query_groups", source, heads), _size(stated, "n_embd", source)
    if neox and (groups != heads or stated.get("head_size") not in (None, width // heads)):
        raise BadInput(
            f"{source} is litgpt's config of grouped queries with GptNeoxMLP, which is not supported: name"
            " lit_model.pth",
            code="unsupported",
        )
    made = {
        "model_type": kind,
        "vocab_size": _size(stated, "padded_vocab_size", source),
        "hidden_size": width,
        "intermediate_size": _size(stated, "intermediate_size", source),
        "num_hidden_layers": _size(stated, "n_layer", source),
        "num_attention_heads": heads,
        "num_key_value_heads": None if neox else groups,
        "head_dim": None if neox or kind == "qwen2" else stated.get("head_size"),
        TIE: False,
    }
    if kind == "mixtral":
        made["num_local_experts"] = _size(stated, "n_expert", source)
        made["num_experts_per_tok"] = _size(stated, "n_expert_per_token", source)
    return made, ()


def _size(values: Mapping[str, Any], key: str, source: str, default: int | None = None) -> int:
    value = values.get(key)
    value = default if value is None else value
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 1 << 63:
        said = "missing" if value is None else shown(value)
        raise BadInput(f"{source}: {key} is {said}, expected a positive integer", code="bad-value")
    return value
