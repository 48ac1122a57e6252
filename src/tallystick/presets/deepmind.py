"""DeepMind's Gopher and Chinchilla, which have no public checkpoints."""

from __future__ import annotations

from tallystick.presets._shape import Models, Values


def _gopher(d: int, layers: int, heads: int, size: int = 128) -> Values:
    return {
        "model_type": "gopher", "vocab_size": 32000, "d_model": d, "n_layers": layers, "n_heads": heads, "kv_size": size,
        "max_position_embeddings": 2048, "tie_word_embeddings": True,
    }  # fmt: skip


# Rae et al. 2021, "Scaling Language Models: Methods, Analysis & Insights from Training Gopher",
# table 1; SentencePiece with 32,000 entries and sequences of 2,048 (section 3.1). No dtype is
# stated.
_GOPHER: Models = {
    "gopher-44m": ("2021-12", _gopher(512, 8, 16, 32)),
    "gopher-117m": ("2021-12", _gopher(768, 12, 12, 64)),
    "gopher-417m": ("2021-12", _gopher(1536, 12, 12)),
    "gopher-1.4b": ("2021-12", _gopher(2048, 24, 16)),
    "gopher-7.1b": ("2021-12", _gopher(4096, 32, 32)),
    "gopher-280b": ("2021-12", _gopher(16384, 80, 128)),
}

# Hoffmann et al. 2022, "Training Compute-Optimal Large Language Models", table 4.
_CHINCHILLA: Models = {"chinchilla-70b": ("2022-03", _gopher(8192, 80, 64))}

FAMILIES = {"Gopher": _GOPHER, "Chinchilla": _CHINCHILLA}
