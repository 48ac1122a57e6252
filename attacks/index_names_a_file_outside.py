"""An index of shards that names a file in another folder."""

import json
from pathlib import Path

ANSWER = "'../../secret.safetensors', which is not a file name in its own folder"


def attack(folder: Path) -> list[str]:
    """Write the folder; the command that reads it."""
    index = {"weight_map": {"wte.weight": "../../secret.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return ["count", str(folder)]
