"""OpenAI's GPT-2, GPT-3 and gpt-oss; Google's PaLM. GPT-3 and PaLM have no public checkpoint."""

from __future__ import annotations

from tallystick.presets._shape import Models, Values, decoder, every


def _gpt2(d: int, layers: int, heads: int) -> Values:
    """GPT-2's configs state no dtype; the checkpoints are float32."""
    return {
        "model_type": "gpt2", "vocab_size": 50257, "n_positions": 1024,
        "n_embd": d, "n_layer": layers, "n_head": heads, "tie_word_embeddings": True, "dtype": "float32",
    }  # fmt: skip


# openai-community/gpt2, …, by the table of configs in TransformerLens
# (model_properties_table.jsonl).
_GPT2: Models = {
    "gpt2": ("2019-02", _gpt2(768, 12, 12)),
    "gpt2-medium": ("2019-05", _gpt2(1024, 24, 16)),
    "gpt2-large": ("2019-08", _gpt2(1280, 36, 20)),
    "gpt2-xl": ("2019-11", _gpt2(1600, 48, 25)),
}


def _gpt3(d: int, layers: int, heads: int) -> Values:
    """GPT-2's blocks and tokenizer with 2,048 positions; the paper states no dtype."""
    return {
        "model_type": "gpt2", "vocab_size": 50257, "n_positions": 2048, "n_embd": d, "n_layer": layers, "n_head": heads,
        "tie_word_embeddings": True,
    }  # fmt: skip


# Brown et al. 2020, "Language Models are Few-Shot Learners", table 2.1, and section 2.1 for GPT-2's
# architecture: sparse attention has the same weights. Two rows of the table contradict themselves:
# 24 heads of 128 are not a width of 2,048, nor are 40 of 128 one of 5,140. Here heads × 128 is the
# width: 16 heads, and 5,120.
_GPT3: Models = {
    "gpt3-125m": ("2020-05", _gpt3(768, 12, 12)),
    "gpt3-350m": ("2020-05", _gpt3(1024, 24, 16)),
    "gpt3-760m": ("2020-05", _gpt3(1536, 24, 16)),
    "gpt3-1.3b": ("2020-05", _gpt3(2048, 24, 16)),
    "gpt3-2.7b": ("2020-05", _gpt3(2560, 32, 32)),
    "gpt3-6.7b": ("2020-05", _gpt3(4096, 32, 32)),
    "gpt3-13b": ("2020-05", _gpt3(5120, 40, 40)),
    "gpt3-175b": ("2020-05", _gpt3(12288, 96, 96)),
}


def _gpt_oss(layers: int, experts: int) -> Values:
    """MXFP4 experts; the config states no other dtype, the rest of the checkpoint is bfloat16."""
    return decoder(
        "gpt_oss", 201088, 2880, 2880, layers, 64, 8, 131072, head_dim=64, num_local_experts=experts, num_experts_per_tok=4,
        sliding_window=128, layer_types=every("full_attention", "sliding_attention", 2, layers),
        quantization_config={
            "quant_method": "mxfp4",
            "modules_to_not_convert": [
                "model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head",
            ],
        },
    )  # fmt: skip


# openai/gpt-oss-20b and -120b, by ai-dynamo/aiconfigurator at 095f58a.
_OSS: Models = {"gpt-oss-20b": ("2025-08", _gpt_oss(24, 32)), "gpt-oss-120b": ("2025-08", _gpt_oss(36, 128))}


def _palm(d: int, layers: int, heads: int) -> Values:
    return {
        "model_type": "palm", "vocab_size": 256000, "d_model": d, "n_layers": layers, "n_heads": heads, "head_dim": 256,
        "max_position_embeddings": 2048,
    }  # fmt: skip


# Chowdhery et al. 2022, "PaLM", table 1; sequences of 2,048 tokens (section 5). The paper states no
# dtype.
_PALM: Models = {
    "palm-8b": ("2022-04", _palm(4096, 32, 16)),
    "palm-62b": ("2022-04", _palm(8192, 64, 32)),
    "palm-540b": ("2022-04", _palm(18432, 118, 48)),
}

FAMILIES = {"GPT-2": _GPT2, "GPT-3": _GPT3, "gpt-oss": _OSS, "PaLM": _PALM}
