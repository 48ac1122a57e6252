"""A `model.safetensors` whose tensors' names clear the screen, set its title and turn text
around.
"""

import json
from pathlib import Path

ANSWER = r"wte\x1b[2J\x1b]0;owned\x07\u202e\n.weight"


def attack(folder: Path) -> list[str]:
    """Write the file; the command that reads it."""
    name = "wte\x1b[2J\x1b]0;owned\x07\u202e\n.weight"
    header = json.dumps({name: {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}}).encode()
    path = folder / "model.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
    return ["count", str(path), "--by", "tensor"]
