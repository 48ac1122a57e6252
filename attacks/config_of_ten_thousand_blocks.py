"""A config of as many blocks as may be listed, and of more modules than are built."""

import json
from pathlib import Path

ANSWER = "transformers would build more than 250,000 modules and parameters"
BUILDS = True


def attack(folder: Path) -> list[str]:
    """Write the config; the command that reads it."""
    (folder / "config.json").write_text(json.dumps({"model_type": "funnel", "block_sizes": [1] * 10_000}))
    return ["count", "config.json"]
