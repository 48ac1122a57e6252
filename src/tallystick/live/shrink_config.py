"""Shrink a config's sizes and build a small model of any type that transformers knows."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tallystick.errors import BadInput
from tallystick.isolation.sealed import Refused, sealed
from tallystick.sources.configs.resolve import model_type_of
from tallystick.sources.transformers_meta.fallback import built_by_transformers

if TYPE_CHECKING:
    from torch import nn

VOCABULARY, LAYERS = 96, 2

# The size that a key is cut to: the first matching rule decides, and no size grows. A head_dim of
# 8 suits a width of 32, which state space models expand to 64.
_SIZES = tuple(
    (re.compile(rf"(?:{keys})$"), size)
    for keys, size in (
        (r"(\w+_)?vocab(_size)?(_\w+)?|n_words", VOCABULARY),
        (r"(num_|n_|moe_)?(hidden_|enc\w*_|dec\w*_|conf_num_hidden_)?(layers?|blocks)|depth", LAYERS),
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
)  # fmt: skip
# Exceptions to the rules: sizes that must fit each other.
_MORE: dict[str, dict[str, Any]] = {
    "dots1": {"n_routed_experts": 4, "n_shared_experts": 1, "num_experts_per_tok": 2},
    "dots3_note_audio_encoder": {"adapter_input_size": 32},
    "dots3_note_text": {"head_dim": 16},
    "gpt_neo": {"attention_types": [[["global", "local"], 2]]},  # from which older transformers derives the layers
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
_TOKEN = re.compile(r"\w+_(id|ids|index|offset)$")
_LAYER_COUNTS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "decoder_layers")


def small_model(config: Any, overrides: Mapping[str, Any], *, source: str) -> Callable[[], nn.Module]:
    """Return a builder of a small model of a config's type, with random weights.

    Args:
        config: the content of a config.json.
        overrides: config keys that override its values.
        source: what the user named, for messages.

    Raises:
        BadInput: if transformers cannot build the config's model, or a small one of its type.
    """
    if not isinstance(config, Mapping):
        raise BadInput(f"{source} is not a model config: expected an object", code="not-a-config")
    model_type = model_type_of({**config, **overrides}, source)
    whole = built_by_transformers(model_type, config, overrides, source=source)
    values = cut(whole.config)

    def build() -> nn.Module:
        import transformers

        kind = getattr(transformers, whole.facts.class_name)
        with sealed():
            model: nn.Module = kind(kind.config_class(**values))
        return model

    try:
        build()
    except (Exception, Refused) as error:  # sizes that do not fit each other, in transformers' words
        said = " ".join(str(error).split())[:200]
        raise BadInput(
            f"{source}: cannot build a small {whole.facts.class_name} from its config ({type(error).__name__}:"
            f" {said}): name a package.module:factory that builds one",
            code="unsupported",
        ) from error
    return build


def cut(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a config with its sizes cut and its flags unchanged.

    Two layers are kept; if layer kinds are listed, enough leading layers to have each kind twice.

    >>> cut({"hidden_size": 4096, "tie_word_embeddings": True, "num_hidden_layers": 80})
    {'hidden_size': 32, 'tie_word_embeddings': True, 'num_hidden_layers': 2}
    >>> cut({"layer_types": list("aaabab"), "num_hidden_layers": 6})["layer_types"]
    ['a', 'a', 'a', 'b', 'a', 'b']
    """
    count = next((config[key] for key in _LAYER_COUNTS if isinstance(config.get(key), int)), 0)
    lists = [value for value in config.values() if isinstance(value, list) and len(value) == count]
    layers = min(count, max([LAYERS, *map(_with_each, lists)]))
    out = {key: _cut(key, value, count, layers) for key, value in config.items()}
    if "num_key_value_heads" in out and config["num_key_value_heads"] == config.get("num_attention_heads"):
        out["num_key_value_heads"] = out["num_attention_heads"]  # stay equal: no grouped queries
    return {**out, **_MORE.get(str(config.get("model_type")), {})}


def _cut(key: str, value: Any, count: int, layers: int) -> Any:
    if isinstance(value, Mapping):
        numbered = key == "per_layer_config"
        return cut({name: one for name, one in value.items() if not numbered or int(name) < layers})
    if isinstance(value, list):
        return [_cut(key, item, count, layers) for item in (value[:layers] if len(value) == count else value)]
    if key in _LAYER_COUNTS and value == count:
        return layers
    if not isinstance(value, int) or isinstance(value, bool):
        return False if key == "use_cache" else value  # export cannot return a cache
    if _TOKEN.match(key):
        return value % 4  # below the ids that the probe reads
    return next((min(value, size) for rule, size in _SIZES if rule.match(key)), value)


def _with_each(kinds: list[Any]) -> int:
    """Return how many leading items contain each kind twice, or once if it occurs once; else 0."""
    if not all(isinstance(kind, str) for kind in kinds):
        return 0
    places = [[place for place, other in enumerate(kinds) if other == kind] for kind in set(kinds)]
    return max((where[:2][-1] + 1 for where in places), default=0)
