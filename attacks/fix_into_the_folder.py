"""A copy that is to be written into the folder that is copied, by the name of a link to it."""

import json
from pathlib import Path

ANSWER = "checkpoint: name a folder outside it"


def attack(folder: Path) -> list[str]:
    """Write a checkpoint and a link to it; the command that copies it."""
    checkpoint = folder / "checkpoint"
    checkpoint.mkdir()
    header = json.dumps({"wte.weight": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}).encode()
    (checkpoint / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(8))
    (folder / "link").symlink_to("checkpoint")
    return ["ties", str(checkpoint), "--fix", str(folder / "link" / "out")]
