"""A config whose attention is a kernel of a repository, which is code."""

import json
from pathlib import Path

ANSWER = "172,119,424"  # what mT5 has without the key
BUILDS = True


def attack(folder: Path) -> list[str]:
    """Write the config; the command that reads it."""
    config = {"model_type": "mt5", "_attn_implementation": "evil/kernel", "attn_implementation": "evil/kernel"}
    (folder / "config.json").write_text(json.dumps(config))
    return ["count", "config.json"]
