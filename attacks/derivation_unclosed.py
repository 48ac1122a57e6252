"""A derivation of lines with 99 open parentheses before a long sum."""

from pathlib import Path

ANSWER = "has no equation in it"


def attack(folder: Path) -> list[str]:
    """Write the text; the command that reads it."""
    path = folder / "derivation.md"
    path.write_text(("(" * 99 + "1" + " + 1" * 900 + " ; = 5\n\n") * 100)
    return ["check", str(path), "--against", "gpt2"]
