"""Google's Gemma models."""

from __future__ import annotations

from typing import Any

from tallystick.presets._shape import FULL, TIED, Models, Values, decoder, every

_HEADS: Values = {"head_dim": 256, **TIED}
_GEMMA2: Values = {"sliding_window": 4096, **TIED, **FULL}


def _layers(period: int, layers: int) -> list[str]:
    return every("full_attention", "sliding_attention", period, layers)


def _gemma3(d: int, inner: int, layers: int, heads: int, key_value_heads: int, size: int) -> Values:
    """With a SigLIP vision tower."""
    return {
        "model_type": "gemma3", "architectures": ["Gemma3ForConditionalGeneration"], "dtype": "bfloat16",
        "mm_tokens_per_image": 256, **TIED,
        "text_config": decoder(
            "gemma3_text", 262208, d, inner, layers, heads, key_value_heads, 131072, head_dim=size, sliding_window=1024,
            layer_types=_layers(6, layers), rope_scaling={"rope_type": "linear", "factor": 8.0}, **TIED,
        ),
        "vision_config": {
            "model_type": "siglip_vision_model", "hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27,
            "num_attention_heads": 16, "image_size": 896, "patch_size": 14, "num_channels": 3, "vision_use_head": False,
        },
    }  # fmt: skip


def _gemma4(d: int, inner: int, layers: int, heads: int, key_value_heads: int, shared: int, **more: Any) -> Values:
    """Full-attention layers have `shared` key/value heads, with keys as values; a vision tower."""
    return {
        "model_type": "gemma4", "architectures": ["Gemma4ForConditionalGeneration"], "dtype": "bfloat16",
        "audio_config": None, **TIED,
        "text_config": decoder(
            "gemma4_text", 262144, d, inner, layers, heads, key_value_heads, 262144, head_dim=256, global_head_dim=512,
            num_global_key_value_heads=shared, attention_k_eq_v=True, hidden_size_per_layer_input=0,
            vocab_size_per_layer_input=262144, num_kv_shared_layers=0, sliding_window=1024, layer_types=_layers(6, layers),
            use_double_wide_mlp=False, final_logit_softcapping=30.0, use_bidirectional_attention="vision", **TIED, **more,
        ),
        "vision_config": {
            "model_type": "gemma4_vision", "hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27,
            "num_attention_heads": 16, "num_key_value_heads": 16, "head_dim": 72, "patch_size": 16,
            "position_embedding_size": 10240, "standardize": True, "use_clipped_linears": False,
        },
    }  # fmt: skip


# google/gemma-…, by litgpt's config.py and TransformerLens; gemma-3-4b and above, with the
# vocabulary of their published checkpoints, and gemma-4-31B by AI-Hypercomputer/maxtext at e591f30;
# gemma-4-26B-A4B by ai-dynamo/aiconfigurator at 095f58a.
_GEMMA: Models = {
    "gemma-2b": ("2024-02", decoder("gemma", 256000, 2048, 16384, 18, 8, 1, 8192, **_HEADS)),
    "gemma-7b": ("2024-02", decoder("gemma", 256000, 3072, 24576, 28, 16, 16, 8192, **_HEADS)),
    "gemma-2-2b": ("2024-07", decoder("gemma2", 256000, 2304, 9216, 26, 8, 4, 8192, head_dim=256, **_GEMMA2)),
    "gemma-2-9b": ("2024-06", decoder("gemma2", 256000, 3584, 14336, 42, 16, 8, 8192, head_dim=256, **_GEMMA2)),
    "gemma-2-27b": ("2024-06", decoder("gemma2", 256000, 4608, 36864, 46, 32, 16, 8192, head_dim=128, **_GEMMA2)),
    "gemma-3-270m": (
        "2025-08",
        decoder(
            "gemma3_text", 262144, 640, 2048, 18, 4, 1, 32768, sliding_window=512, layer_types=_layers(6, 18), **_HEADS
        ),
    ),
    "gemma-3-1b": (
        "2025-03",
        decoder(
            "gemma3_text", 262144, 1152, 6912, 26, 4, 1, 32768, sliding_window=512, layer_types=_layers(6, 26), **_HEADS
        ),
    ),
    "gemma-3-4b": ("2025-03", _gemma3(2560, 10240, 34, 8, 4, 256)),
    "gemma-3-12b": ("2025-03", _gemma3(3840, 15360, 48, 16, 8, 256)),
    "gemma-3-27b": ("2025-03", _gemma3(5376, 21504, 62, 32, 16, 128)),
    "gemma-4-26b-a4b": (
        "2026-04",
        _gemma4(
            2816, 2112, 30, 16, 8, 2, enable_moe_block=True, num_experts=128, top_k_experts=8, moe_intermediate_size=704
        ),
    ),
    "gemma-4-31b": ("2026-04", _gemma4(5376, 21504, 60, 32, 16, 4, enable_moe_block=False)),
}  # fmt: skip

FAMILIES = {"Gemma": _GEMMA}
