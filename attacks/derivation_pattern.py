"""A derivation with a word of 48,000 characters after a plus, which a pattern that backtracks
splits in all ways.
"""

from pathlib import Path

ANSWER = "it has no equation to judge"


def attack(folder: Path) -> list[str]:
    """Write the text; the command that reads it."""
    path = folder / "derivation.md"
    path.write_text(("1 = 2\n+ " + "a1" * 24_000 + "\n") * 10)
    return ["check", str(path), "--against", "gpt2"]
