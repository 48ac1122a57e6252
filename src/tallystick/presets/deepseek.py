"""DeepSeek models, and models that use its design: Kimi K2 and GLM-5."""

from __future__ import annotations

from typing import Any

from tallystick.presets._shape import Models, Values

_TILES: Values = {"quant_method": "fp8", "activation_scheme": "dynamic", "fmt": "e4m3", "weight_block_size": [128, 128]}


def _latent(model_type: str, **more: Any) -> Values:
    """DeepSeek-V3's sizes; FP8 weights with one scale per tile, unless `more` overrides it."""
    return {
        "model_type": model_type, "vocab_size": 129280, "hidden_size": 7168, "intermediate_size": 18432,
        "moe_intermediate_size": 2048, "num_hidden_layers": 61, "first_k_dense_replace": 3, "num_attention_heads": 128,
        "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
        "n_shared_experts": 1, "n_routed_experts": 256, "num_experts_per_tok": 8, "num_nextn_predict_layers": 1,
        "max_position_embeddings": 163840, "tie_word_embeddings": False, "dtype": "bfloat16", "quantization_config": _TILES,
        **more,
    }  # fmt: skip


def _chosen(heads: int) -> Values:
    return {"index_head_dim": 128, "index_n_heads": heads, "index_topk": 2048}


def _v4(d: int, expert: int, layers: int, heads: int, experts: int, groups: int, rank: int, first: list[int]) -> Values:
    """FP4 experts, FP8 elsewhere; layers compress 4 or 128 tokens into one, alternately."""
    return {
        "model_type": "deepseek_v4", "vocab_size": 129280, "hidden_size": d, "moe_intermediate_size": expert,
        "num_hidden_layers": layers, "num_attention_heads": heads, "head_dim": 512, "n_routed_experts": experts,
        "num_experts_per_tok": 6, "num_hash_layers": 3, "q_lora_rank": rank, "o_lora_rank": 1024, "o_groups": groups,
        "hc_mult": 4, "index_head_dim": 128, "index_n_heads": 64, "sliding_window": 128,
        "compress_ratios": [*first, *((4, 128)[number % 2] for number in range(layers - 2)), 0],
        "num_nextn_predict_layers": 1, "max_position_embeddings": 1048576, "tie_word_embeddings": False,
        "dtype": "bfloat16", "expert_dtype": "fp4", "quantization_config": {**_TILES, "scale_fmt": "ue8m0"},
    }  # fmt: skip


# deepseek-ai/…, by ai-dynamo/aiconfigurator at 095f58a; V2-Lite by AI-Hypercomputer/maxtext at
# e591f30.
_DEEPSEEK: Models = {
    "deepseek-v2-lite": (
        "2024-05",
        {
            "model_type": "deepseek_v2", "vocab_size": 102400, "hidden_size": 2048, "intermediate_size": 10944,
            "moe_intermediate_size": 1408, "num_hidden_layers": 27, "first_k_dense_replace": 1, "num_attention_heads": 16,
            "q_lora_rank": None, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
            "n_shared_experts": 2, "n_routed_experts": 64, "num_experts_per_tok": 6, "max_position_embeddings": 163840,
            "tie_word_embeddings": False, "dtype": "bfloat16",
        },
    ),
    "deepseek-v3": ("2024-12", _latent("deepseek_v3")),
    "deepseek-r1": ("2025-01", _latent("deepseek_v3")),
    "deepseek-v3.2": (
        "2025-12",
        _latent("deepseek_v32", **_chosen(64), quantization_config={**_TILES, "scale_fmt": "ue8m0"}),
    ),
    "deepseek-v4-flash": ("2026-04", _v4(4096, 2048, 43, 64, 256, 8, 1024, [0, 0])),
    "deepseek-v4-pro": ("2026-04", _v4(7168, 3072, 61, 128, 384, 16, 1536, [128, 128])),
}  # fmt: skip

# moonshotai/Kimi-K2-Instruct, whose model_type is DeepSeek-V3's class under another name, by
# ai-dynamo/aiconfigurator.
_KIMI: Models = {
    "kimi-k2": (
        "2025-07",
        _latent(
            "deepseek_v3", vocab_size=163840, first_k_dense_replace=1, num_attention_heads=64, n_routed_experts=384,
            num_nextn_predict_layers=0, max_position_embeddings=131072,
        ),
    ),
}  # fmt: skip


def _glm5() -> Values:
    """Its unquantised config; GLM-5-FP8 is a separate repository."""
    values = _latent(
        "glm_moe_dsa", vocab_size=154880, hidden_size=6144, intermediate_size=12288, num_hidden_layers=78,
        num_attention_heads=64, q_lora_rank=2048, qk_nope_head_dim=192, v_head_dim=256, max_position_embeddings=202752,
        **_chosen(32),
    )  # fmt: skip
    del values["quantization_config"]
    return values


# zai-org/glm-4-9b-chat-hf, by two copies of its config; GLM-4.5-Air by a log of ms-swift; GLM-5 by
# aiconfigurator.
_GLM: Models = {
    "glm-4-9b": (
        "2024-06",
        {
            "model_type": "glm", "vocab_size": 151552, "hidden_size": 4096, "intermediate_size": 13696,
            "num_hidden_layers": 40, "num_attention_heads": 32, "num_key_value_heads": 2, "head_dim": 128,
            "partial_rotary_factor": 0.5, "max_position_embeddings": 131072, "tie_word_embeddings": False,
            "dtype": "bfloat16",
        },
    ),
    "glm-4.5-air": (
        "2025-07",
        {
            "model_type": "glm4_moe", "vocab_size": 151552, "hidden_size": 4096, "intermediate_size": 10944,
            "moe_intermediate_size": 1408, "num_hidden_layers": 46, "first_k_dense_replace": 1, "num_attention_heads": 96,
            "num_key_value_heads": 8, "head_dim": 128, "attention_bias": True, "use_qk_norm": False,
            "n_routed_experts": 128, "n_shared_experts": 1, "num_experts_per_tok": 8, "num_nextn_predict_layers": 1,
            "partial_rotary_factor": 0.5, "max_position_embeddings": 131072, "tie_word_embeddings": False,
            "dtype": "bfloat16",
        },
    ),
    "glm-5": ("2026-02", _glm5()),
}  # fmt: skip

FAMILIES = {"DeepSeek": _DEEPSEEK, "Kimi": _KIMI, "GLM": _GLM}
