"""A config whose backbone is `/dev/zero`: where it is read as a file it has no end."""

import json
from pathlib import Path

ANSWER = "transformers cannot build it"
BUILDS = True


def attack(folder: Path) -> list[str]:
    """Write the config; the command that reads it."""
    config = {"model_type": "dpt", "backbone": "/dev/zero", "use_timm_backbone": False, "backbone_config": None}
    (folder / "config.json").write_text(json.dumps(config))
    return ["count", "config.json"]
