"""A pytorch_model.bin with one tensor whose name has 14 MB."""

from pathlib import Path

ANSWER = "1 parameters"
HEADER = 14_000_000  # bytes


def attack(folder: Path) -> list[str]:
    """Write the file; the command that reads it."""
    import torch

    path = folder / "pytorch_model.bin"
    torch.save({"a_" * 7_000_000: torch.zeros(1)}, path)
    return ["count", str(path)]
