"""Alibaba's Qwen models."""

from __future__ import annotations

from typing import Any

from tallystick.presets._shape import TIED, Models, Values, decoder, every

_SEEN: Values = {"use_sliding_window": False}
_HEADS: Values = {"head_dim": 128, **_SEEN}


def _moe(
    d: int, inner: int, layers: int, heads: int, key_value_heads: int, expert: int, positions: int, **more: Any
) -> Values:
    """Qwen3's MoE models: 8 of 128 experts per token."""
    return decoder(
        "qwen3_moe", 151936, d, inner, layers, heads, key_value_heads, positions, moe_intermediate_size=expert, **_HEADS,
        **{"num_experts": 128, "num_experts_per_tok": 8, "sliding_window": None, "decoder_sparse_step": 1, **more},
    )  # fmt: skip


def _gated(model_type: str, d: int, layers: int, heads: int, key_value_heads: int, values: int, **more: Any) -> Values:
    """Qwen3.5: three layers of Gated DeltaNet, then one of attention; a vision tower."""
    return {
        "model_type": model_type, "tie_word_embeddings": False,
        "architectures": [f"{'Qwen3_5Moe' if 'moe' in model_type else 'Qwen3_5'}ForConditionalGeneration"],
        "text_config": {
            "model_type": f"{model_type}_text", "vocab_size": 248320, "hidden_size": d, "num_hidden_layers": layers,
            "num_attention_heads": heads, "num_key_value_heads": key_value_heads, "head_dim": 256,
            "max_position_embeddings": 262144, "layer_types": every("full_attention", "linear_attention", 4, layers),
            "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128, "linear_num_key_heads": 16,
            "linear_num_value_heads": values, "linear_value_head_dim": 128, "dtype": "bfloat16", **more,
        },
        "vision_config": {
            "model_type": model_type, "depth": 27, "hidden_size": 1152, "intermediate_size": 4304, "in_channels": 3,
            "num_heads": 16, "num_position_embeddings": 2304, "out_hidden_size": d, "patch_size": 16,
            "spatial_merge_size": 2, "temporal_patch_size": 2,
        },
    }  # fmt: skip


def _experts(count: int, used: int, inner: int) -> Values:
    return {
        "num_experts": count, "num_experts_per_tok": used, "moe_intermediate_size": inner,
        "shared_expert_intermediate_size": inner,
    }  # fmt: skip


# Qwen/Qwen1.5-MoE-A2.7B, by mlc-llm's model_preset.py; Qwen/Qwen2.5-…, by litgpt's config.py.
_QWEN2: Models = {
    "qwen1.5-moe-a2.7b": (
        "2024-03",
        decoder(
            "qwen2_moe", 151936, 2048, 5632, 24, 16, 16, 8192, moe_intermediate_size=1408,
            shared_expert_intermediate_size=5632, num_experts=60, num_experts_per_tok=4, **_SEEN,
        ),
    ),
    "qwen2.5-0.5b": ("2024-09", decoder("qwen2", 151936, 896, 4864, 24, 14, 2, 32768, **_SEEN, **TIED)),
    "qwen2.5-1.5b": ("2024-09", decoder("qwen2", 151936, 1536, 8960, 28, 12, 2, 131072, **_SEEN, **TIED)),
    "qwen2.5-3b": ("2024-09", decoder("qwen2", 151936, 2048, 11008, 36, 16, 2, 32768, **_SEEN, **TIED)),
    "qwen2.5-7b": ("2024-09", decoder("qwen2", 152064, 3584, 18944, 28, 28, 4, 131072, **_SEEN)),
    "qwen2.5-14b": ("2024-09", decoder("qwen2", 152064, 5120, 13824, 48, 40, 8, 131072, **_SEEN)),
    "qwen2.5-32b": ("2024-09", decoder("qwen2", 152064, 5120, 27648, 64, 40, 8, 131072, **_SEEN)),
    "qwen2.5-72b": ("2024-09", decoder("qwen2", 152064, 8192, 29568, 80, 64, 8, 131072, **_SEEN)),
}  # fmt: skip

# Qwen/Qwen3-…, by ai-dynamo/aiconfigurator at 095f58a; Qwen3-Next by AI-Hypercomputer/maxtext at
# e591f30.
_QWEN3: Models = {
    "qwen3-0.6b": ("2025-04", decoder("qwen3", 151936, 1024, 3072, 28, 16, 8, 40960, **_HEADS, **TIED)),
    "qwen3-1.7b": ("2025-04", decoder("qwen3", 151936, 2048, 6144, 28, 16, 8, 40960, **_HEADS, **TIED)),
    "qwen3-4b": ("2025-04", decoder("qwen3", 151936, 2560, 9728, 36, 32, 8, 40960, **_HEADS, **TIED)),
    "qwen3-8b": ("2025-04", decoder("qwen3", 151936, 4096, 12288, 36, 32, 8, 40960, **_HEADS)),
    "qwen3-14b": ("2025-04", decoder("qwen3", 151936, 5120, 17408, 40, 40, 8, 40960, **_HEADS)),
    "qwen3-32b": ("2025-04", decoder("qwen3", 151936, 5120, 25600, 64, 64, 8, 40960, **_HEADS)),
    "qwen3-30b-a3b": ("2025-04", _moe(2048, 6144, 48, 32, 4, 768, 40960)),
    "qwen3-235b-a22b": ("2025-04", _moe(4096, 12288, 94, 64, 4, 1536, 40960)),
    "qwen3-coder-480b-a35b": ("2025-07", _moe(6144, 8192, 62, 96, 8, 2560, 262144, num_experts=160)),
    "qwen3-next-80b-a3b": (
        "2025-09",
        decoder(
            "qwen3_next", 151936, 2048, 5120, 48, 16, 2, 262144, head_dim=256, linear_conv_kernel_dim=4,
            linear_key_head_dim=128, linear_num_key_heads=16, linear_num_value_heads=32, linear_value_head_dim=128,
            decoder_sparse_step=1, layer_types=every("full_attention", "linear_attention", 4, 48), **_experts(512, 10, 512),
        ),
    ),
}  # fmt: skip

# Qwen/Qwen3.5-…, by ai-dynamo/aiconfigurator at 095f58a.
_QWEN35: Models = {
    "qwen3.5-27b": ("2026-02", _gated("qwen3_5", 5120, 64, 24, 4, 48, intermediate_size=17408)),
    "qwen3.5-35b-a3b": ("2026-02", _gated("qwen3_5_moe", 2048, 40, 16, 2, 32, **_experts(256, 8, 512))),
    "qwen3.5-122b-a10b": ("2026-02", _gated("qwen3_5_moe", 3072, 48, 32, 2, 64, **_experts(256, 8, 1024))),
    "qwen3.5-397b-a17b": ("2026-02", _gated("qwen3_5_moe", 4096, 60, 32, 2, 64, **_experts(512, 10, 1024))),
}

FAMILIES = {"Qwen": {**_QWEN2, **_QWEN3, **_QWEN35}}
