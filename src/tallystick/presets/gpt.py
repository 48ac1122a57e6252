"""OpenAI's GPT-2 and gpt-oss, and Google's PaLM, which has no public checkpoint."""

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

FAMILIES = {"GPT-2": _GPT2, "gpt-oss": _OSS, "PaLM": _PALM}
