"""A GGUF file of 600 tensors with names of 64 kB each."""

import struct
from pathlib import Path

ANSWER = "0 parameters"
HEADER = 39_000_000  # bytes


def attack(folder: Path) -> list[str]:
    """Write the file; the command that reads it."""
    names = [b"%05d." % number + b"norm" * 16_000 for number in range(600)]
    tensors = [struct.pack("<Q", len(name)) + name + struct.pack("<IQIQ", 1, 0, 0, 0) for name in names]
    path = folder / "model.gguf"
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, len(names), 0) + b"".join(tensors) + bytes(64))
    return ["count", str(path)]
