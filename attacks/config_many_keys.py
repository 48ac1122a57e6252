"""A config.json of 500,000 keys and no model_type, each of which could be a misspelt one."""

from pathlib import Path

ANSWER = "is not a model config"
HEADER = 10_000_000  # bytes


def attack(folder: Path) -> list[str]:
    """Write the file; the command that reads it."""
    path = folder / "config.json"
    path.write_text("{" + ",".join(f'"emb_di{number}":1' for number in range(500_000)) + "}")
    return ["count", str(path)]
