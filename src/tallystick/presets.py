"""Published models by name: the config keys that decide a tensor or a cache, and the dtype that the published config states.

A preset without a dtype is one whose published files we could not check for it; its bytes are those of float32.
"""

from __future__ import annotations

from typing import Any

Preset = dict[str, Any]


def _gpt2(d: int, layers: int, heads: int) -> Preset:
    return {
        "model_type": "gpt2", "vocab_size": 50257, "n_positions": 1024,
        "n_embd": d, "n_layer": layers, "n_head": heads, "dtype": "float32",
    }  # fmt: skip


def _neox(vocabulary: int, d: int, layers: int, heads: int) -> Preset:
    return {
        "model_type": "gpt_neox", "vocab_size": vocabulary, "hidden_size": d, "intermediate_size": 4 * d,
        "num_hidden_layers": layers, "num_attention_heads": heads, "tie_word_embeddings": False, "dtype": "float16",
    }  # fmt: skip


def _opt(d: int, layers: int, heads: int, **more: Any) -> Preset:
    return {
        "model_type": "opt", "vocab_size": 50272, "max_position_embeddings": 2048, "hidden_size": d, "ffn_dim": 4 * d,
        "num_hidden_layers": layers, "num_attention_heads": heads, "dtype": "float16", **more,
    }  # fmt: skip


def _bloom(d: int, layers: int, heads: int, dtype: str = "float16") -> Preset:
    return {
        "model_type": "bloom", "vocab_size": 250880, "hidden_size": d,
        "n_layer": layers, "n_head": heads, "dtype": dtype,
    }  # fmt: skip


def _decoder(  # as many sizes as the design has
    model_type: str, vocabulary: int, d: int, inner: int, layers: int, heads: int, key_value_heads: int, **more: Any
) -> Preset:
    """The design that Llama began: its sizes, and with `more` whatever else the config states."""
    values = {
        "model_type": model_type, "vocab_size": vocabulary, "hidden_size": d, "intermediate_size": inner,
        "num_hidden_layers": layers, "num_attention_heads": heads, "num_key_value_heads": key_value_heads,
        "tie_word_embeddings": False, "dtype": "bfloat16", **more,
    }  # fmt: skip
    return {key: value for key, value in values.items() if value is not None}


def _palm(d: int, layers: int, heads: int) -> Preset:
    return {
        "model_type": "palm", "vocab_size": 256000, "d_model": d, "n_layers": layers, "n_heads": heads, "head_dim": 256,
    }  # fmt: skip


# What differs from an untied model in bfloat16.
_TIED: Preset = {"tie_word_embeddings": True}
_HALF: Preset = {"dtype": "float16"}
_FULL: Preset = {"dtype": "float32"}
_UNCHECKED: Preset = {"dtype": None}
_GEMMA: Preset = {"head_dim": 256, **_TIED}

PRESETS: dict[str, Preset] = {
    "gpt2": _gpt2(768, 12, 12),
    "gpt2-medium": _gpt2(1024, 24, 16),
    "gpt2-large": _gpt2(1280, 36, 20),
    "gpt2-xl": _gpt2(1600, 48, 25),

    "llama-7b": _decoder("llama", 32000, 4096, 11008, 32, 32, 32, **_HALF),
    "llama-13b": _decoder("llama", 32000, 5120, 13824, 40, 40, 40, **_HALF),
    "llama-30b": _decoder("llama", 32000, 6656, 17920, 60, 52, 52, **_HALF),
    "llama-65b": _decoder("llama", 32000, 8192, 22016, 80, 64, 64, **_HALF),
    "llama-2-7b": _decoder("llama", 32000, 4096, 11008, 32, 32, 32, **_HALF),
    "llama-2-13b": _decoder("llama", 32000, 5120, 13824, 40, 40, 40, **_HALF),
    "llama-2-70b": _decoder("llama", 32000, 8192, 28672, 80, 64, 8, **_HALF),
    "llama-3-8b": _decoder("llama", 128256, 4096, 14336, 32, 32, 8),
    "llama-3-70b": _decoder("llama", 128256, 8192, 28672, 80, 64, 8),
    "llama-3.1-8b": _decoder("llama", 128256, 4096, 14336, 32, 32, 8),
    "llama-3.1-70b": _decoder("llama", 128256, 8192, 28672, 80, 64, 8),
    "llama-3.1-405b": _decoder("llama", 128256, 16384, 53248, 126, 128, 8),
    "llama-3.2-1b": _decoder("llama", 128256, 2048, 8192, 16, 32, 8, head_dim=64, **_TIED),
    "llama-3.2-3b": _decoder("llama", 128256, 3072, 8192, 28, 24, 8, head_dim=128, **_TIED),
    "tinyllama-1.1b": _decoder("llama", 32000, 2048, 5632, 22, 32, 4),
    "smollm2-135m": _decoder("llama", 49152, 576, 1536, 30, 9, 3, **_TIED),
    "smollm2-360m": _decoder("llama", 49152, 960, 2560, 32, 15, 5, **_TIED),
    "smollm2-1.7b": _decoder("llama", 49152, 2048, 8192, 24, 32, 32, **_TIED),

    "mistral-7b": _decoder("mistral", 32000, 4096, 14336, 32, 32, 8),
    "mistral-nemo-12b": _decoder("mistral", 131072, 5120, 14336, 40, 32, 8, head_dim=128),
    "mixtral-8x7b": _decoder("mixtral", 32000, 4096, 14336, 32, 32, 8, num_local_experts=8, num_experts_per_tok=2),
    "mixtral-8x22b": _decoder("mixtral", 32000, 6144, 16384, 56, 48, 8, num_local_experts=8, num_experts_per_tok=2),

    "qwen2.5-0.5b": _decoder("qwen2", 151936, 896, 4864, 24, 14, 2, **_TIED),
    "qwen2.5-1.5b": _decoder("qwen2", 151936, 1536, 8960, 28, 12, 2, **_TIED),
    "qwen2.5-3b": _decoder("qwen2", 151936, 2048, 11008, 36, 16, 2, **_TIED),
    "qwen2.5-7b": _decoder("qwen2", 152064, 3584, 18944, 28, 28, 4),
    "qwen2.5-14b": _decoder("qwen2", 152064, 5120, 13824, 48, 40, 8),
    "qwen2.5-32b": _decoder("qwen2", 152064, 5120, 27648, 64, 40, 8),
    "qwen2.5-72b": _decoder("qwen2", 152064, 8192, 29568, 80, 64, 8),
    "qwen3-0.6b": _decoder("qwen3", 151936, 1024, 3072, 28, 16, 8, head_dim=128, **_TIED),
    "qwen3-1.7b": _decoder("qwen3", 151936, 2048, 6144, 28, 16, 8, head_dim=128, **_TIED),
    "qwen3-4b": _decoder("qwen3", 151936, 2560, 9728, 36, 32, 8, head_dim=128, **_TIED),
    "qwen3-8b": _decoder("qwen3", 151936, 4096, 12288, 36, 32, 8, head_dim=128),
    "qwen3-14b": _decoder("qwen3", 151936, 5120, 17408, 40, 40, 8, head_dim=128),
    "qwen3-32b": _decoder("qwen3", 151936, 5120, 25600, 64, 64, 8, head_dim=128),

    "gemma-2b": _decoder("gemma", 256000, 2048, 16384, 18, 8, 1, **_GEMMA),
    "gemma-7b": _decoder("gemma", 256000, 3072, 24576, 28, 16, 16, **_GEMMA),
    "gemma-2-2b": _decoder("gemma2", 256000, 2304, 9216, 26, 8, 4, **_GEMMA, **_FULL),
    "gemma-2-9b": _decoder("gemma2", 256000, 3584, 14336, 42, 16, 8, **_GEMMA, **_FULL),
    "gemma-2-27b": _decoder("gemma2", 256000, 4608, 36864, 46, 32, 16, head_dim=128, **_TIED, **_FULL),

    "gemma-3-270m": _decoder("gemma3_text", 262144, 640, 2048, 18, 4, 1, sliding_window=512, **_GEMMA),
    "gemma-3-1b": _decoder("gemma3_text", 262144, 1152, 6912, 26, 4, 1, sliding_window=512, **_GEMMA),

    "phi-1.5": _decoder("phi", 51200, 2048, 8192, 24, 32, 32, **_HALF),
    "phi-2": _decoder("phi", 51200, 2560, 10240, 32, 32, 32, **_HALF),
    "phi-3-mini": _decoder("phi3", 32064, 3072, 8192, 32, 32, 32),
    "phi-3-medium": _decoder("phi3", 32064, 5120, 17920, 40, 40, 10),
    "phi-4": _decoder("phi3", 100352, 5120, 17920, 40, 40, 10),

    "pythia-70m": _neox(50304, 512, 6, 8),
    "pythia-160m": _neox(50304, 768, 12, 12),
    "pythia-410m": _neox(50304, 1024, 24, 16),
    "pythia-1b": _neox(50304, 2048, 16, 8),
    "pythia-1.4b": _neox(50304, 2048, 24, 16),
    "pythia-2.8b": _neox(50304, 2560, 32, 32),
    "pythia-6.9b": _neox(50432, 4096, 32, 32),
    "pythia-12b": _neox(50688, 5120, 36, 40),
    "gpt-neox-20b": _neox(50432, 6144, 44, 64),
    "gpt-j-6b": {
        "model_type": "gptj", "vocab_size": 50400, "n_embd": 4096, "n_layer": 28, "n_head": 16,
        "tie_word_embeddings": False, "dtype": "float32",
    },

    "opt-125m": _opt(768, 12, 12),
    "opt-350m": _opt(1024, 24, 16, word_embed_proj_dim=512, do_layer_norm_before=False),
    "opt-1.3b": _opt(2048, 24, 32),
    "opt-2.7b": _opt(2560, 32, 32),
    "opt-6.7b": _opt(4096, 32, 32),
    "opt-13b": _opt(5120, 40, 40),
    "opt-30b": _opt(7168, 48, 56),
    "bloom-560m": _bloom(1024, 24, 16),
    "bloom-1b1": _bloom(1536, 24, 16),
    "bloom-1b7": _bloom(2048, 24, 16),
    "bloom-3b": _bloom(2560, 30, 32),
    "bloom-7b1": _bloom(4096, 30, 32),
    "bloom": _bloom(14336, 70, 112, dtype="bfloat16"),
    "falcon-7b": {
        "model_type": "falcon", "vocab_size": 65024, "hidden_size": 4544, "num_hidden_layers": 32,
        "num_attention_heads": 71, "multi_query": True, "parallel_attn": True, "new_decoder_architecture": False,
        "bias": False, "dtype": "bfloat16",
    },
    "falcon-40b": {
        "model_type": "falcon", "vocab_size": 65024, "hidden_size": 8192, "num_hidden_layers": 60,
        "num_attention_heads": 128, "num_kv_heads": 8, "parallel_attn": True, "new_decoder_architecture": True,
        "bias": False, "dtype": "bfloat16",
    },

    "starcoder2-3b": _decoder("starcoder2", 49152, 3072, 12288, 30, 24, 2, **_TIED, **_UNCHECKED),
    "starcoder2-7b": _decoder("starcoder2", 49152, 4608, 18432, 32, 36, 4, **_TIED, **_UNCHECKED),
    "starcoder2-15b": _decoder("starcoder2", 49152, 6144, 24576, 40, 48, 4, **_UNCHECKED),
    "olmo-2-1b": _decoder("olmo2", 100352, 2048, 8192, 16, 16, 16, **_UNCHECKED),
    "olmo-2-7b": _decoder("olmo2", 100352, 4096, 11008, 32, 32, 32, **_FULL),
    "olmo-2-13b": _decoder("olmo2", 100352, 5120, 13824, 40, 40, 40, **_FULL),
    "olmo-2-32b": _decoder("olmo2", 100352, 5120, 27648, 64, 40, 8, **_UNCHECKED),
    "olmo-7b": _decoder("olmo", 50304, 4096, 11008, 32, 32, 32, **_UNCHECKED),
    "olmoe-1b-7b": _decoder(
        "olmoe", 50304, 2048, 1024, 16, 16, 16, num_experts=64, num_experts_per_tok=8, **_UNCHECKED
    ),
    "smollm3-3b": _decoder("smollm3", 128256, 2048, 11008, 36, 16, 4, **_TIED, **_UNCHECKED),
    "command-r": _decoder("cohere", 256000, 8192, 22528, 40, 64, 64, **_TIED, **_UNCHECKED),
    "glm-4-9b": _decoder("glm", 151552, 4096, 13696, 40, 32, 2, head_dim=128, **_UNCHECKED),
    "phi-3.5-moe": _decoder(
        "phimoe", 32064, 4096, 6400, 32, 32, 8, num_local_experts=16, num_experts_per_tok=2, attention_bias=True,
        lm_head_bias=True, **_UNCHECKED,
    ),
    "qwen1.5-moe-a2.7b": _decoder(
        "qwen2_moe", 151936, 2048, 5632, 24, 16, 16, moe_intermediate_size=1408, shared_expert_intermediate_size=5632,
        num_experts=60, num_experts_per_tok=4, **_UNCHECKED,
    ),
    "granite-3.0-2b": _decoder("granite", 49155, 2048, 8192, 40, 32, 8, **_TIED),
    "granite-3.0-8b": _decoder("granite", 49155, 4096, 12800, 40, 32, 8, **_TIED),

    "deepseek-v3": {
        "model_type": "deepseek_v3", "vocab_size": 129280, "hidden_size": 7168, "intermediate_size": 18432,
        "moe_intermediate_size": 2048, "num_hidden_layers": 61, "first_k_dense_replace": 3, "num_attention_heads": 128,
        "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
        "n_shared_experts": 1, "n_routed_experts": 256, "num_experts_per_tok": 8, "dtype": "bfloat16",
    },
    "deepseek-v2-lite": {
        "model_type": "deepseek_v2", "vocab_size": 102400, "hidden_size": 2048, "intermediate_size": 10944,
        "moe_intermediate_size": 1408, "num_hidden_layers": 27, "first_k_dense_replace": 1, "num_attention_heads": 16,
        "q_lora_rank": None, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
        "n_shared_experts": 2, "n_routed_experts": 64, "num_experts_per_tok": 6,
    },
    "gpt-oss-20b": _decoder(
        "gpt_oss", 201088, 2880, 2880, 24, 64, 8, head_dim=64, num_local_experts=32, num_experts_per_tok=4
    ),
    "gpt-oss-120b": _decoder(
        "gpt_oss", 201088, 2880, 2880, 36, 64, 8, head_dim=64, num_local_experts=128, num_experts_per_tok=4
    ),

    "palm-8b": _palm(4096, 32, 16),
    "palm-62b": _palm(8192, 64, 32),
    "palm-540b": _palm(18432, 118, 48),

    # The models of a first course (tallystick.models.teaching), at sizes that a pencil can follow.
    "bare-bones-lm": {"model_type": "bare_bones_lm", "vocab_size": 1000, "d_model": 64},
    "mlp": {"model_type": "mlp", "inputs": 784, "width": 128, "depth": 2, "outputs": 10},
    "feed-forward-lm": {
        "model_type": "feed_forward_lm", "vocab_size": 1000, "context_length": 4, "d_model": 64, "width": 128,
        "depth": 2,
    },
    "single-head-attention": {"model_type": "single_head_attention", "d_model": 64, "d_head": 16},
    "multi-head-attention": {"model_type": "multi_head_attention", "d_model": 64, "n_heads": 4},
    "transformer-layer": {"model_type": "transformer_layer", "d_model": 64, "n_heads": 4, "d_ff": 256},
    "transformer-lm": {
        "model_type": "transformer_lm", "vocab_size": 1000, "context_length": 32, "d_model": 64, "n_layers": 2,
        "n_heads": 4, "d_ff": 256,
    },
    "rotary-transformer-lm": {
        "model_type": "rotary_transformer_lm", "vocab_size": 1000, "d_model": 64, "n_layers": 2, "n_heads": 4,
        "d_ff": 256,
    },
}  # fmt: skip
