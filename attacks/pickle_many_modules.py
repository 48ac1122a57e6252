"""A `pytorch_model.bin` with a whole module whose parts are each held twice, 25 times one inside
the other.
"""

from pathlib import Path

ANSWER = "more than"


def attack(folder: Path) -> list[str]:
    """Write the file; the command that reads it."""
    import torch
    from torch import nn

    module = nn.Linear(1, 1)
    for _ in range(25):
        module = nn.ModuleDict({"a": module, "b": module})
    path = folder / "pytorch_model.bin"
    torch.save(module, path)
    return ["count", str(path)]
