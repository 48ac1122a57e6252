"""Configs that say how their weights are quantised."""

from __future__ import annotations

from typing import Any

import packings
from tallystick import count

LLAMA = {**packings.LLAMA, "tie_word_embeddings": False}
GPT_OSS = {
    "model_type": "gpt_oss", "vocab_size": 201088, "hidden_size": 2880, "intermediate_size": 2880, "head_dim": 64,
    "num_hidden_layers": 24, "num_attention_heads": 64, "num_key_value_heads": 8, "num_local_experts": 32,
    "num_experts_per_tok": 4, "tie_word_embeddings": False,
    "quantization_config": {
        "quant_method": "mxfp4",
        "modules_to_not_convert": [
            "model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head",
        ],
    },
}  # fmt: skip
TILES = {"quant_method": "fp8", "activation_scheme": "dynamic", "fmt": "e4m3", "weight_block_size": [128, 128]}
DEEPSEEK = {
    "model_type": "deepseek_v3", "vocab_size": 129280, "hidden_size": 7168, "intermediate_size": 18432,
    "moe_intermediate_size": 2048, "num_hidden_layers": 61, "first_k_dense_replace": 3, "num_attention_heads": 128,
    "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
    "n_shared_experts": 1, "n_routed_experts": 256, "num_experts_per_tok": 8, "dtype": "bfloat16",
    "quantization_config": TILES,
}  # fmt: skip
FLOAT = {"num_bits": 8, "type": "float"}
MOE = {
    "model_type": "qwen3_moe", "hidden_size": 256, "intermediate_size": 320, "moe_intermediate_size": 128, "num_experts": 4,
    "num_experts_per_tok": 2, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64,
    "vocab_size": 100, "mlp_only_layers": [0], "dtype": "bfloat16", "tie_word_embeddings": False,
}  # fmt: skip
GROUP = {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 32, "symmetric": True}


def quantised(told: dict[str, Any], **more: Any) -> Any:
    """The ledger of the tiny Llama whose config says so of its weights."""
    return count({**LLAMA, "quantization_config": told, **more})


def bytes_of(ledger: Any) -> int:
    return int(ledger.totals["stored_bytes"])


def compressed(form: str, **weights: Any) -> dict[str, Any]:
    """What compressed-tensors says of weights in a format."""
    group = {"targets": ["Linear"], "weights": {**GROUP, **weights}}
    return {
        "quant_method": "compressed-tensors", "format": form, "config_groups": {"group_0": group}, "ignore": ["lm_head"],
    }  # fmt: skip
