"""A safetensors header of 600 tensors with names of 64 kB each, full of words that patterns for
roles begin with.
"""

from pathlib import Path

ANSWER = "600 parameters"
HEADER = 40_000_000  # bytes


def attack(folder: Path) -> list[str]:
    """Write the file; the command that reads it."""
    entries = []
    for number in range(600):
        name = f"{number}." + "norm" * 16_300
        entries.append(f'"{name}":{{"dtype":"U8","shape":[1],"data_offsets":[{number},{number + 1}]}}')
    header = ("{" + ",".join(entries) + "}").encode()
    path = folder / "model.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(600))
    return ["count", str(path)]
