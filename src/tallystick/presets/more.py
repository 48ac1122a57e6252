"""Models of other publishers: BigCode, Cohere, IBM, MiniMax and NVIDIA."""

from __future__ import annotations

from tallystick.presets._shape import FULL, HALF, TIED, Models, Values, decoder

_WINDOW: Values = {"sliding_window": 4096}

# bigcode/starcoder2-…, by NeMo's Starcoder2Config… and mlc-llm's model_preset.py;
# bigcode-project/starcoder2#18 for ties.
_STARCODER: Models = {
    "starcoder2-3b": (
        "2024-02",
        decoder("starcoder2", 49152, 3072, 12288, 30, 24, 2, 16384, **_WINDOW, **TIED, **FULL),
    ),
    "starcoder2-7b": ("2024-02", decoder("starcoder2", 49152, 4608, 18432, 32, 36, 4, 16384, **_WINDOW, **TIED)),
    "starcoder2-15b": ("2024-02", decoder("starcoder2", 49152, 6144, 24576, 40, 48, 4, 16384, **_WINDOW, **FULL)),
}

# CohereLabs/c4ai-command-r-v01: 8,192 positions in its config, 131,072 in the tokenizer's.
_COMMAND: Models = {
    "command-r": ("2024-03", decoder("cohere", 256000, 8192, 22528, 40, 64, 64, 8192, **TIED, **HALF)),
}

# ibm-granite/granite-3.0-…-base, by copies of 3.1's and 3.3's configs, which have its shapes.
_GRANITE: Models = {
    "granite-3.0-2b": ("2024-10", decoder("granite", 49155, 2048, 8192, 40, 32, 8, 4096, **TIED)),
    "granite-3.0-8b": ("2024-10", decoder("granite", 49155, 4096, 12800, 40, 32, 8, 4096, **TIED)),
}

# MiniMaxAI/MiniMax-M2.5 states no dtype besides its quantisation; by ai-dynamo/aiconfigurator at
# 095f58a.
_MINIMAX: Models = {
    "minimax-m2.5": (
        "2026-02",
        decoder(
            "minimax_m2", 200064, 3072, 1536, 62, 48, 8, 196608, head_dim=128, num_local_experts=256,
            num_experts_per_tok=8,
            quantization_config={
                "quant_method": "fp8", "fmt": "float8_e4m3fn", "activation_scheme": "dynamic",
                "weight_block_size": [128, 128], "modules_to_not_convert": ["gate", "e_score_correction_bias", "lm_head"],
            },
        ),
    ),
}  # fmt: skip

# nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16, by ai-dynamo/aiconfigurator at 095f58a.
_NEMOTRON: Models = {
    "nemotron-3-nano-30b-a3b": (
        "2025-12",
        {
            "model_type": "nemotron_h", "vocab_size": 131072, "hidden_size": 2688, "intermediate_size": 1856,
            "hybrid_override_pattern": "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME", "num_attention_heads": 32,
            "num_key_value_heads": 2, "head_dim": 128, "mamba_num_heads": 64, "mamba_head_dim": 64, "ssm_state_size": 128,
            "n_groups": 8, "conv_kernel": 4, "chunk_size": 128, "use_conv_bias": True, "n_routed_experts": 128,
            "num_experts_per_tok": 6, "moe_intermediate_size": 1856, "moe_shared_expert_intermediate_size": 3712,
            "max_position_embeddings": 262144, "tie_word_embeddings": False, "dtype": "bfloat16",
        },
    ),
}  # fmt: skip

FAMILIES = {
    "StarCoder": _STARCODER, "Command": _COMMAND, "Granite": _GRANITE, "MiniMax": _MINIMAX, "Nemotron": _NEMOTRON,
}  # fmt: skip
