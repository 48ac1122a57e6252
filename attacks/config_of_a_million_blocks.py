"""A config of a million blocks, each some twenty modules for transformers to build."""

import json
from pathlib import Path

ANSWER = "block_sizes lists 1,000,000 values, too many"
BUILDS = True


def attack(folder: Path) -> list[str]:
    """Write the config; the command that reads it."""
    (folder / "config.json").write_text(json.dumps({"model_type": "funnel", "block_sizes": [1] * 1_000_000}))
    return ["count", "config.json"]
