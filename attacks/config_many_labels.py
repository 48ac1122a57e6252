"""A config of a billion labels: transformers gives each a name."""

import json
from pathlib import Path

ANSWER = "bytes of memory to build it"
BUILDS = True


def attack(folder: Path) -> list[str]:
    """Write the config; the command that reads it."""
    (folder / "config.json").write_text(json.dumps({"model_type": "mt5", "num_labels": 1_000_000_000}))
    return ["count", "config.json"]
