"""Meta's Llama, and models of its design: TinyLlama and SmolLM."""

from __future__ import annotations

from tallystick.presets._shape import HALF, TIED, Models, Values, decoder


def _llama4(experts: int, step: int, positions: int, *, norm: bool) -> Values:
    return {
        "model_type": "llama4", "architectures": ["Llama4ForConditionalGeneration"], "dtype": "bfloat16",
        "text_config": decoder(
            "llama4_text", 202048, 5120, 8192, 48, 40, 8, positions, head_dim=128, intermediate_size_mlp=16384,
            attention_chunk_size=8192, num_local_experts=experts, num_experts_per_tok=1, interleave_moe_layer_step=step,
            use_qk_norm=norm,
        ),
        "vision_config": {
            "model_type": "llama4_vision_model", "hidden_size": 1408, "intermediate_size": 5632, "num_hidden_layers": 34,
            "num_attention_heads": 16, "image_size": 336, "patch_size": 14, "vision_output_dim": 4096,
            "projector_input_dim": 4096, "projector_output_dim": 4096,
        },
    }  # fmt: skip


# meta-llama/…, huggyllama/… for the first, by litgpt's config.py, the neox configs, and
# ai-dynamo/aiconfigurator at 095f58a.
_LLAMA: Models = {
    "llama-7b": ("2023-02", decoder("llama", 32000, 4096, 11008, 32, 32, 32, 2048, **HALF)),
    "llama-13b": ("2023-02", decoder("llama", 32000, 5120, 13824, 40, 40, 40, 2048, **HALF)),
    "llama-30b": ("2023-02", decoder("llama", 32000, 6656, 17920, 60, 52, 52, 2048, **HALF)),
    "llama-65b": ("2023-02", decoder("llama", 32000, 8192, 22016, 80, 64, 64, 2048, **HALF)),
    "llama-2-7b": ("2023-07", decoder("llama", 32000, 4096, 11008, 32, 32, 32, 4096, **HALF)),
    "llama-2-13b": ("2023-07", decoder("llama", 32000, 5120, 13824, 40, 40, 40, 4096, **HALF)),
    "llama-2-70b": ("2023-07", decoder("llama", 32000, 8192, 28672, 80, 64, 8, 4096, **HALF)),
    "llama-3-8b": ("2024-04", decoder("llama", 128256, 4096, 14336, 32, 32, 8, 8192)),
    "llama-3-70b": ("2024-04", decoder("llama", 128256, 8192, 28672, 80, 64, 8, 8192)),
    "llama-3.1-8b": ("2024-07", decoder("llama", 128256, 4096, 14336, 32, 32, 8, 131072)),
    "llama-3.1-70b": ("2024-07", decoder("llama", 128256, 8192, 28672, 80, 64, 8, 131072)),
    "llama-3.1-405b": ("2024-07", decoder("llama", 128256, 16384, 53248, 126, 128, 8, 131072)),
    "llama-3.2-1b": ("2024-09", decoder("llama", 128256, 2048, 8192, 16, 32, 8, 131072, head_dim=64, **TIED)),
    "llama-3.2-3b": ("2024-09", decoder("llama", 128256, 3072, 8192, 28, 24, 8, 131072, head_dim=128, **TIED)),
    "llama-3.3-70b": ("2024-12", decoder("llama", 128256, 8192, 28672, 80, 64, 8, 131072)),
    "llama-4-scout": ("2025-04", _llama4(16, 1, 10485760, norm=True)),
    "llama-4-maverick": ("2025-04", _llama4(128, 2, 1048576, norm=False)),
}

# TinyLlama/TinyLlama-1.1B-Chat-v1.0 (the base model's checkpoint is float32);
# HuggingFaceTB/SmolLM2-…, SmolLM3-3B.
_ALIKE: Models = {
    "tinyllama-1.1b": ("2024-01", decoder("llama", 32000, 2048, 5632, 22, 32, 4, 2048)),
}
_SMOLLM: Models = {
    "smollm2-135m": ("2024-11", decoder("llama", 49152, 576, 1536, 30, 9, 3, 8192, **TIED)),
    "smollm2-360m": ("2024-11", decoder("llama", 49152, 960, 2560, 32, 15, 5, 8192, **TIED)),
    "smollm2-1.7b": ("2024-11", decoder("llama", 49152, 2048, 8192, 24, 32, 32, 8192, **TIED)),
    "smollm3-3b": (
        "2025-07", decoder("smollm3", 128256, 2048, 11008, 36, 16, 4, 65536, sliding_window=None, **TIED),
    ),
}  # fmt: skip

FAMILIES = {"Llama": _LLAMA, "TinyLlama": _ALIKE, "SmolLM": _SMOLLM}
