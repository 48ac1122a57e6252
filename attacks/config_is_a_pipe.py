"""A `config.json` that is a pipe into which nobody writes."""

import os
from pathlib import Path

ANSWER = "config.json is not a regular file"


def attack(folder: Path) -> list[str]:
    """Write the folder; the command that reads it."""
    os.mkfifo(folder / "config.json")
    return ["count", str(folder)]
