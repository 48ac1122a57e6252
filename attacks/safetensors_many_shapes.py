"""A safetensors header of a million tensors, each of a shape that no other has."""

from pathlib import Path

ANSWER = "would take more than"
HEADER = 64_000_000  # bytes


def attack(folder: Path) -> list[str]:
    """Write the file; the command that reads it."""
    entry = '"{0}":{{"dtype":"U8","shape":[{0},0],"data_offsets":[0,0]}}'
    header = ("{" + ",".join(map(entry.format, range(1_000_000))) + "}").encode()
    path = folder / "model.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header)
    return ["count", str(path)]
