"""A tokenizer.json with ten million empty lists in its vocabulary."""

from pathlib import Path

ANSWER = "its tokenizer was not used: "
HEADER = 30_000_000  # bytes


def attack(folder: Path) -> list[str]:
    """Write the files; the command that reads it."""
    (folder / "config.json").write_text('{"model_type":"gpt2"}')
    (folder / "tokenizer.json").write_text('{"vocab":[' + "[]," * 10_000_000 + "1]}")
    return ["count", str(folder)]
