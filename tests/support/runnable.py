"""Small configs whose models run, of every type whose layers say how they do."""

from __future__ import annotations

from typing import Any

WIDTHS = {"hidden_size": 64, "num_attention_heads": 4, "vocab_size": 211, "intermediate_size": 176}
GROUPED = {**WIDTHS, "num_key_value_heads": 2, "num_hidden_layers": 2}
GPT2 = {"n_embd": 64, "n_head": 4, "n_layer": 2, "vocab_size": 211, "n_positions": 128}

# A small model of every type whose layers say how they run.
SMALL: dict[str, dict[str, Any]] = {
    "gpt2": {**GPT2, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0},
    "gptj": {**GPT2, "rotary_dim": 8},
    "bloom": {"hidden_size": 64, "n_head": 4, "n_layer": 2, "vocab_size": 211},
    "gpt_neox": {**WIDTHS, "num_hidden_layers": 2},
    "opt": {**WIDTHS, "num_hidden_layers": 2, "ffn_dim": 176, "word_embed_proj_dim": 64, "dropout": 0.0},
    "phi": {**WIDTHS, "num_hidden_layers": 2},
    "falcon": {**WIDTHS, "num_hidden_layers": 2},
    "starcoder2": {**GROUPED, "residual_dropout": 0.0, "embedding_dropout": 0.0},
    "llama": GROUPED,
    "granite": GROUPED,
    "olmo2": GROUPED,
    "mistral": GROUPED,
    "phi3": GROUPED,
    "qwen2": GROUPED,
    "qwen3": {**GROUPED, "head_dim": 16},
    "gemma": {**GROUPED, "head_dim": 16},
    "gemma2": {**GROUPED, "head_dim": 16},
    "gemma3_text": {**GROUPED, "head_dim": 16, "sliding_window_pattern": 2},
    "mixtral": {**GROUPED, "num_local_experts": 4},
    "qwen3_moe": {
        **GROUPED, "head_dim": 16, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 48,
        "mlp_only_layers": [0],
    },
    "nanochat": {**GROUPED, "head_dim": 16},
    "bamba": {
        **GROUPED, "num_hidden_layers": 3, "attn_layer_indices": [1], "mamba_n_heads": 8, "mamba_d_head": 16,
        "mamba_d_state": 16, "mamba_chunk_size": 16,
    },
    "olmo": GROUPED,
    "olmo3": {**GROUPED, "num_hidden_layers": 4},
    "stablelm": GROUPED,
    "cohere": {**GROUPED, "use_qk_norm": True},
    "cohere2": {**GROUPED, "num_hidden_layers": 3, "sliding_window_pattern": 2},
    "glm": {**GROUPED, "head_dim": 16},
    "glm4": {**GROUPED, "head_dim": 16},
    "smollm3": {**GROUPED, "num_hidden_layers": 4},
    "arcee": GROUPED,
    "seed_oss": {**GROUPED, "head_dim": 16, "attention_dropout": 0.0, "residual_dropout": 0.0},
    "ministral3": {**GROUPED, "head_dim": 16},
    "helium": {**GROUPED, "head_dim": 16},
    "exaone4": {**GROUPED, "num_hidden_layers": 4},
    "hunyuan_v1_dense": {**GROUPED, "head_dim": 16},
    "ernie4_5": {**GROUPED, "head_dim": 16},
    "nemotron": {**GROUPED, "head_dim": 16},
    "gpt_neo": {
        **WIDTHS, "num_heads": 4, "num_layers": 2, "attention_types": [[["global", "local"], 1]], "window_size": 20,
        "max_position_embeddings": 128,
    },
    "gpt_bigcode": {**GPT2, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0},
    "codegen": {**GPT2, "rotary_dim": 8},
    "olmoe": {**GROUPED, "num_experts": 4, "num_experts_per_tok": 2},
    "granitemoe": {**GROUPED, "num_local_experts": 4},
    "glm4_moe": {
        **GROUPED, "head_dim": 16, "n_routed_experts": 8, "n_group": 2, "topk_group": 1, "num_experts_per_tok": 2,
        "moe_intermediate_size": 24, "first_k_dense_replace": 1,
    },
    "cwm": {**GROUPED, "head_dim": 16, "num_hidden_layers": 4},
    "hyperclovax": GROUPED,
    "jais2": GROUPED,
    "vaultgemma": {**GROUPED, "head_dim": 16},
    "flex_olmo": {**GROUPED, "num_experts": 4, "num_experts_per_tok": 2},
    "exaone_moe": {
        **GROUPED, "head_dim": 16, "num_hidden_layers": 4, "num_experts": 8, "n_group": 2, "topk_group": 1,
        "num_experts_per_tok": 2, "moe_intermediate_size": 24,
    },
    "gpt_oss": {**GROUPED, "head_dim": 16, "num_local_experts": 4},
    "llama4_text": {
        **GROUPED, "head_dim": 16, "num_local_experts": 4, "num_hidden_layers": 4, "attention_chunk_size": 20,
        "moe_layers": [1, 3], "intermediate_size_mlp": 120,
    },
    "deepseek_v3": {
        **WIDTHS, "num_hidden_layers": 2, "first_k_dense_replace": 1, "num_key_value_heads": 4, "kv_lora_rank": 40,
        "q_lora_rank": 56, "qk_rope_head_dim": 8, "qk_nope_head_dim": 16, "v_head_dim": 24, "n_routed_experts": 8,
        "n_group": 2, "topk_group": 1, "num_experts_per_tok": 2, "moe_intermediate_size": 24,
    },
}  # fmt: skip
EAGER_ONLY = {
    "gptj",
    "bloom",
    "gemma2",
    "gpt_oss",
    "gpt_neo",
    "codegen",
    "vaultgemma",
}  # transformers refuses torch's fused attention


def config_of(model_type: str, **values: Any) -> dict[str, Any]:
    """What config.json holds."""
    return {"model_type": model_type, "pad_token_id": None, **SMALL[model_type], **values}
