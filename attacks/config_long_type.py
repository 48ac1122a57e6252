"""A config.json whose model_type has 20 MB, which comparing with known words would take minutes
for.
"""

from pathlib import Path

ANSWER = "expected a name such as gpt2"
HEADER = 20_000_000  # bytes


def attack(folder: Path) -> list[str]:
    """Write the file; the command that reads it."""
    path = folder / "config.json"
    path.write_text('{"model_type":"' + "x" * 20_000_000 + '"}')
    return ["count", str(path)]
