"""Small models of the types that transformers knows: a type's default config with its sizes cut, and each kind of layer kept."""

from __future__ import annotations

import re
from typing import Any

import torch
import transformers
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

transformers.logging.set_verbosity_error()

CAUSAL = sorted(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)

# Those that transformers 5.23 does not build from any config made here, and why.
IMPOSSIBLE = {
    "cohere_compass_text": "its default config lacks a kind of layer that it reads",
    "dbrx": "its attention reads a rope_theta that its config class does not have",
    "gemma3n": "its vision tower is timm's, which is no dependency of transformers",
    "gemma4_assistant": "its default config contradicts itself",
    "gemma4_unified_assistant": "its default config contradicts itself",
    "musicgen": "its causal model takes the config of its decoder, which the family does not hand on",
    "musicgen_melody": "as musicgen",
}

# What an integer is cut to, by its key; the first rule that knows the key decides, and nothing is made larger.
# 4 heads of 8 make a width of 32, of which Mamba makes 64: 8 heads of 8.
_SIZES = [
    (re.compile(rf"({keys})$"), size)
    for keys, size in (
        (r"(\w+_)?vocab(_size)?(_\w+)?", 96),
        (r"(num_|n_|moe_)?(hidden_|enc\w*_|dec\w*_|conf_num_hidden_)?(layers?|blocks)|depth", 2),
        (r"mamba_n_heads|mamba_num_heads|n_mamba_heads", 8),
        (r"\w*head_dim|dim_head|d_kv|kv_channels|\w*head_size|\w*d_head|rotary_dim|mamba_headdim", 8),
        (r"\w*(key_value|kv|query|key)_(heads|groups)(_\w+)?", 2),
        (r"(\w+_)?(n_|num_)?(attention_)?heads?(_per_layer)?", 4),
        (r"\w*(experts|expert_num)", 4),
        (r"\w*experts_per_tok(en)?|moe_k|moe_topk", 2),
        (r"n_group|topk_group|num_expert_group", 1),
        (r"mamba_d_ssm", 64),
        (r"\w*(intermediate|ffn|feed_forward|ffn_hidden)_(dim|size)(_mlp)?|d_ff|dff|dim_ff|n_inner|mlp_dim|d_inner", 48),
        (r"\w*(hidden_size|embedding_size|embed_dim|embed_proj_dim|lora_rank)(_\w+)?|d_model|n_embd|dim|lru_width", 32),
        (r"emb(edding)?_dim|\w+_output_dim|\w+_(in|out)_dim|projector_\w+|conv_output_size|output_channels|\w+_out_channel", 32),
        (r"(max_|n_)\w*(position\w*|ctx)|context_length|max_seq_len", 64),
    )
]  # fmt: skip
_TOKEN = re.compile(r"\w+_(id|index|offset)$")
_LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "decoder_layers")
_VOCABULARY = 96
FLAG = "tie_word_embeddings"

# What the rules cannot know: sizes that must fit each other.
_MORE: dict[str, dict[str, Any]] = {
    "dots1": {"n_routed_experts": 4, "n_shared_experts": 1},
    "dots3_note_audio_encoder": {"adapter_input_size": 32},
    "dots3_note_text": {"head_dim": 16},
    "hunyuan_v1_dense": {"head_dim": 8},
    "hunyuan_v1_moe": {"head_dim": 8},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"]},
    "mamba2": {"num_heads": 8},
    "ministral": {"head_dim": 8},
    "nemotron": {"num_key_value_heads": 2},
    "qwen4_exp_text": {
        "indexer_n_heads": 4,
        "indexer_kv_heads": 1,
        "indexer_head_dim": 8,
        "indexer_budget": 8,
        "indexer_compress_ratio": 2,
    },
    "reformer": {"is_decoder": True, "axial_pos_embds": False},
}


def small_model(model_type: str, *, tied: bool | None = None, auto: str = "AutoModelForCausalLM") -> Any:
    """The language model of a type, with random weights.

    Args:
        model_type: what transformers calls it.
        tied: what the config says, at its top and in its parts; None leaves it as the type has it.
        auto: the family of transformers that builds it.
    """
    values = cut(transformers.AutoConfig.for_model(model_type).to_dict())
    if tied is not None:
        for part in (values, *(part for part in values.values() if isinstance(part, dict) and FLAG in part)):
            part[FLAG] = tied
    config = transformers.AutoConfig.for_model(**{**values, "model_type": model_type})
    torch.manual_seed(0)
    return getattr(transformers, auto).from_config(config)


def cut(values: dict[str, Any]) -> dict[str, Any]:
    """A config's values, each size cut; where it lists its layers, as many of the first as have every kind twice."""
    count = next((values[key] for key in _LAYERS if isinstance(values.get(key), int)), 0)
    lists = {key: value for key, value in values.items() if isinstance(value, list) and len(value) == count > 0}
    layers = max([min(count, 2), *map(_with_each_twice, lists.values())])
    out: dict[str, Any] = {}
    for key, value in values.items():
        if key == "per_layer_config" and value:
            out[key] = {layer: cut(told) for layer, told in value.items() if int(layer) < layers}
        elif isinstance(value, dict):
            out[key] = cut(value)
        elif key in lists:
            out[key] = [_cut(key, item) for item in value[:layers]]
        elif key in _LAYERS and value == count:
            out[key] = layers
        else:
            out[key] = _cut(key, value)
    if "num_key_value_heads" in values and values["num_key_value_heads"] == values.get("num_attention_heads"):
        out["num_key_value_heads"] = out["num_attention_heads"]
    return {**out, **_MORE.get(values.get("model_type", ""), {})}


def _cut(key: str, value: Any) -> Any:
    if not isinstance(value, int) or isinstance(value, bool):
        return value
    if _TOKEN.match(key):
        return value % _VOCABULARY
    return next((min(value, size) for rule, size in _SIZES if rule.match(key)), value)


def _with_each_twice(kinds: list[Any]) -> int:
    """How many of the first items hold every kind twice, or as often as there is; none where they are no kinds."""
    if not all(isinstance(kind, str) for kind in kinds):
        return 0
    wanted = {kind: min(2, kinds.count(kind)) for kind in kinds}
    enough = (n for n in range(len(kinds) + 1) if all(kinds[:n].count(kind) >= often for kind, often in wanted.items()))
    return next(enough)
