"""Microsoft's Phi models."""

from __future__ import annotations

from tallystick.presets._shape import HALF, TIED, Models, decoder

# microsoft/phi-1_5, phi-2, Phi-3-mini-4k-instruct, Phi-3-medium-4k-instruct (its window as mini's),
# Phi-3.5-MoE-instruct, phi-4, Phi-4-mini-instruct, by litgpt's config.py, mlc-llm's model_preset.py
# and huggingface/trl#7257.
_PHI: Models = {
    "phi-1.5": ("2023-09", decoder("phi", 51200, 2048, 8192, 24, 32, 32, 2048, partial_rotary_factor=0.5, **HALF)),
    "phi-2": ("2023-12", decoder("phi", 51200, 2560, 10240, 32, 32, 32, 2048, partial_rotary_factor=0.4, **HALF)),
    "phi-3-mini": ("2024-04", decoder("phi3", 32064, 3072, 8192, 32, 32, 32, 4096, sliding_window=2047)),
    "phi-3-medium": ("2024-05", decoder("phi3", 32064, 5120, 17920, 40, 40, 10, 4096, sliding_window=2047)),
    "phi-3.5-moe": (
        "2024-08",
        decoder(
            "phimoe", 32064, 4096, 6400, 32, 32, 8, 131072, num_local_experts=16, num_experts_per_tok=2,
            attention_bias=True, lm_head_bias=True, sliding_window=131072,
        ),
    ),
    "phi-4": ("2024-12", decoder("phi3", 100352, 5120, 17920, 40, 40, 10, 16384, sliding_window=None)),
    "phi-4-mini": ("2025-02", decoder("phi3", 200064, 3072, 8192, 32, 24, 8, 131072, sliding_window=262144, **TIED)),
}  # fmt: skip

FAMILIES = {"Phi": _PHI}
