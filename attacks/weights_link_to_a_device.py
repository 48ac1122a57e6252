"""A `model.safetensors` that is a link to `/dev/zero`, which has no end."""

from pathlib import Path

ANSWER = "model.safetensors is not a regular file"


def attack(folder: Path) -> list[str]:
    """Write the folder; the command that reads it."""
    (folder / "config.json").write_text('{"model_type": "gpt2", "n_layer": 1}')
    (folder / "model.safetensors").symlink_to("/dev/zero")
    return ["count", str(folder)]
