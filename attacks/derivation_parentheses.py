"""A derivation of lines with 660 products of parentheses, none of which leads to the equation."""

from pathlib import Path

ANSWER = "has no equation in it"


def attack(folder: Path) -> list[str]:
    """Write the text; the command that reads it."""
    path = folder / "derivation.md"
    path.write_text(("(1)" * 660 + " ; = 5\n\n") * 240)
    return ["check", str(path), "--against", "gpt2"]
