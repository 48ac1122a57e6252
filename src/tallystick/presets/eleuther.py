"""EleutherAI's Pythia, GPT-NeoX and GPT-J."""

from __future__ import annotations

from tallystick.presets._shape import Models, Values


def _neox(vocabulary: int, d: int, layers: int, heads: int) -> Values:
    return {
        "model_type": "gpt_neox", "vocab_size": vocabulary, "hidden_size": d, "intermediate_size": 4 * d,
        "num_hidden_layers": layers, "num_attention_heads": heads, "max_position_embeddings": 2048, "rotary_pct": 0.25,
        "tie_word_embeddings": False, "dtype": "float16",
    }  # fmt: skip


# EleutherAI/pythia-…, by EleutherAI/pythia models/*.yml; gpt-neox-20b by neox configs/20B.yml.
_PYTHIA: Models = {
    "pythia-70m": ("2023-04", _neox(50304, 512, 6, 8)),
    "pythia-160m": ("2023-04", _neox(50304, 768, 12, 12)),
    "pythia-410m": ("2023-04", _neox(50304, 1024, 24, 16)),
    "pythia-1b": ("2023-04", _neox(50304, 2048, 16, 8)),
    "pythia-1.4b": ("2023-04", _neox(50304, 2048, 24, 16)),
    "pythia-2.8b": ("2023-04", _neox(50304, 2560, 32, 32)),
    "pythia-6.9b": ("2023-04", _neox(50432, 4096, 32, 32)),
    "pythia-12b": ("2023-04", _neox(50688, 5120, 36, 40)),
}
_NEOX: Models = {"gpt-neox-20b": ("2022-02", _neox(50432, 6144, 44, 64))}

# EleutherAI/gpt-j-6b states no dtype; the files of its main branch are in float32.
_GPT_J: Models = {
    "gpt-j-6b": (
        "2021-06",
        {
            "model_type": "gptj", "vocab_size": 50400, "n_embd": 4096, "n_layer": 28, "n_head": 16, "n_positions": 2048,
            "rotary_dim": 64, "tie_word_embeddings": False, "dtype": "float32",
        },
    ),
}  # fmt: skip

FAMILIES = {"Pythia": _PYTHIA, "GPT-NeoX": _NEOX, "GPT-J": _GPT_J}
