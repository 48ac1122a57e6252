"""A TOML file with a key of 100,000 parts, which its library looks at from each start."""

from pathlib import Path

ANSWER = "reading it takes more than"


def attack(folder: Path) -> list[str]:
    """Write the file; the command that reads it."""
    path = folder / "config.toml"
    path.write_text(".".join("a" * 100_000) + " = 1\n")
    return ["count", str(path)]
