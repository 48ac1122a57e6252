"""A checkpoint to copy that holds a link to `/dev/zero`, which has no end."""

import json
from pathlib import Path

ANSWER = "holds 'merges.txt', a link to '/dev/zero' outside the folder, which is not followed"
_SHAPE = {"dtype": "F32", "shape": [2, 2]}


def attack(folder: Path) -> list[str]:
    """Write a checkpoint whose config and weights contradict each other; the command that copies
    it.
    """
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
    (checkpoint / "merges.txt").symlink_to("/dev/zero")
    return ["ties", str(checkpoint), "--fix", str(folder / "out"), "--as", "tied"]
