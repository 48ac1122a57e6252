"""A derivation of lines with 1,990 variables and no end to them: an expression could begin at
each.
"""

from pathlib import Path

ANSWER = "it has no equation to judge"


def attack(folder: Path) -> list[str]:
    """Write the text; the command that reads it."""
    path = folder / "derivation.md"
    path.write_text("d = 5\n" + ("d " * 1990 + " ; = 5\n\n") * 120)
    return ["check", str(path), "--against", "gpt2"]
