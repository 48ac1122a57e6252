"""Meta's OPT, BigScience's BLOOM and TII's Falcon."""

from __future__ import annotations

from typing import Any

from tallystick.presets._shape import Models, Values


def _opt(d: int, layers: int, heads: int, **more: Any) -> Values:
    return {
        "model_type": "opt", "vocab_size": 50272, "max_position_embeddings": 2048, "hidden_size": d, "ffn_dim": 4 * d,
        "num_hidden_layers": layers, "num_attention_heads": heads, "tie_word_embeddings": True, "dtype": "float16", **more,
    }  # fmt: skip


def _bloom(d: int, layers: int, heads: int, dtype: str = "float16") -> Values:
    """BLOOM's configs state no dtype: `dtype` is the checkpoint's. ALiBi, trained at 2,048."""
    return {
        "model_type": "bloom", "vocab_size": 250880, "hidden_size": d, "n_layer": layers, "n_head": heads,
        "seq_length": 2048, "tie_word_embeddings": True, "dtype": dtype,
    }  # fmt: skip


# facebook/opt-…, by the table of configs in TransformerLens.
_OPT: Models = {
    "opt-125m": ("2022-05", _opt(768, 12, 12)),
    "opt-350m": ("2022-05", _opt(1024, 24, 16, word_embed_proj_dim=512, do_layer_norm_before=False)),
    "opt-1.3b": ("2022-05", _opt(2048, 24, 32)),
    "opt-2.7b": ("2022-05", _opt(2560, 32, 32)),
    "opt-6.7b": ("2022-05", _opt(4096, 32, 32)),
    "opt-13b": ("2022-05", _opt(5120, 40, 40)),
    "opt-30b": ("2022-05", _opt(7168, 48, 56)),
}

# bigscience/bloom-…, by the same table.
_BLOOM: Models = {
    "bloom-560m": ("2022-07", _bloom(1024, 24, 16)),
    "bloom-1b1": ("2022-07", _bloom(1536, 24, 16)),
    "bloom-1b7": ("2022-07", _bloom(2048, 24, 16)),
    "bloom-3b": ("2022-07", _bloom(2560, 30, 32)),
    "bloom-7b1": ("2022-07", _bloom(4096, 30, 32)),
    "bloom": ("2022-07", _bloom(14336, 70, 112, dtype="bfloat16")),
}


def _falcon(d: int, layers: int, heads: int, **more: Any) -> Values:
    return {
        "model_type": "falcon", "vocab_size": 65024, "hidden_size": d, "num_hidden_layers": layers,
        "num_attention_heads": heads, "parallel_attn": True, "bias": False, "max_position_embeddings": 2048,
        "tie_word_embeddings": True, "dtype": "bfloat16", **more,
    }  # fmt: skip


# tiiuae/falcon-7b and -40b, by litgpt's config.py.
_FALCON: Models = {
    "falcon-7b": ("2023-05", _falcon(4544, 32, 71, multi_query=True, new_decoder_architecture=False)),
    "falcon-40b": ("2023-05", _falcon(8192, 60, 128, num_kv_heads=8, new_decoder_architecture=True)),
}

FAMILIES = {"OPT": _OPT, "BLOOM": _BLOOM, "Falcon": _FALCON}
