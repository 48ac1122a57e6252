"""Small runs on a text made here."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from tallystick.training.config import TrainConfig, configured

MODEL = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "tie_word_embeddings": True,
}


def text_in(folder: Path) -> Path:
    """A folder of texts with something to learn in them."""
    made = folder / "texts"
    made.mkdir(exist_ok=True)
    chance = random.Random(0)
    words = ["tally", "stick", "notch", "count", "half", "match"]
    for number in range(12):
        text = " ".join(chance.choice(words) for _ in range(300))
        (made / f"{number:02d}.txt").write_text(text)
    return made


def small(folder: Path, **settings: Any) -> TrainConfig:
    """A run of a few steps in a folder."""
    model = {**MODEL, **settings.pop("model", {})}
    base = {
        "source": "llama", "data": str(text_in(folder)), "out": str(folder / "run"), "sequence": 16, "batch": 4, "steps": 6,
        "warmup": 2, "learning_rate": 1e-2, "eval_every": 0, "eval_batches": 2, "save_every": 0, "log_every": 1, "device": "cpu",
    }  # fmt: skip
    return configured({**base, "model": model}, settings, where="the test")
