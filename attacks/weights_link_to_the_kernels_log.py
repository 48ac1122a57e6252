"""A `model.safetensors` that is a link to `/proc/kmsg`: a regular file by its kind, which is waited
for when it is read.
"""

from pathlib import Path

ANSWER = "model.safetensors"  # is empty, or may not be read: that depends on who asks


def attack(folder: Path) -> list[str]:
    """Write the folder; the command that reads it."""
    (folder / "config.json").write_text('{"model_type": "gpt2", "n_layer": 1}')
    (folder / "model.safetensors").symlink_to("/proc/kmsg")
    return ["count", str(folder)]
