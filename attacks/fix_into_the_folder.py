"""A copy that is to be written into the folder that is copied, by the name of a link to it."""

import json
from pathlib import Path

ANSWER = "itself: name a folder outside of it"
_SHAPE = {"dtype": "F32", "shape": [2, 2]}


def attack(folder: Path) -> list[str]:
    """Write a checkpoint whose config and weights contradict each other; the command that copies it."""
    checkpoint = folder / "checkpoint"
    checkpoint.mkdir()
    config = {"model_type": "gpt2", "n_layer": 1, "n_head": 1, "n_embd": 2, "vocab_size": 2, "n_positions": 1}
    (checkpoint / "config.json").write_text(json.dumps(config))
    tensors = {
        "transformer.wte.weight": _SHAPE | {"data_offsets": [0, 16]},
        "lm_head.weight": _SHAPE | {"data_offsets": [16, 32]},
    }
    header = json.dumps(tensors).encode()
    (checkpoint / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(31) + b"\1")
    (folder / "link").symlink_to("checkpoint")
    return ["ties", str(checkpoint), "--fix", str(folder / "link" / "out"), "--as", "tied"]
