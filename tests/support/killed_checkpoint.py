"""A checkpoint whose repair is interrupted."""

from __future__ import annotations

from pathlib import Path

from checkpoints import write, write_config


def checkpoint(folder: Path) -> Path:
    """A config that says tied, and a head with a value of its own."""
    folder.mkdir(parents=True)
    config = {"model_type": "gpt2", "n_layer": 1, "n_embd": 4, "n_head": 1, "vocab_size": 10, "n_positions": 4}
    write_config(folder, {**config, "tie_word_embeddings": True})
    path = write(folder / "model.safetensors", {"transformer.wte.weight": (10, 4), "lm_head.weight": (10, 4)})
    content = path.read_bytes()
    path.write_bytes(content[:-1] + b"\1")
    (folder / "sub").mkdir()
    (folder / "sub" / "notes.txt").write_text("kept")
    return folder
