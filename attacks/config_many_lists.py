"""A config.json with ten million empty lists, each of which takes 88 bytes and three in the
file.
"""

from pathlib import Path

ANSWER = "its values would take more than"
HEADER = 30_000_000  # bytes


def attack(folder: Path) -> list[str]:
    """Write the file; the command that reads it."""
    path = folder / "config.json"
    path.write_text('{"model_type":"gpt2","x":[' + "[]," * 10_000_000 + "1]}")
    return ["count", str(path)]
