"""A safetensors header of 600,000 tensors that all claim the same bytes."""

from pathlib import Path

ANSWER = "overlaps the tensor before it"
HEADER = 40_000_000  # bytes


def attack(folder: Path) -> list[str]:
    """Write the file; the command that reads it."""
    entry = '"{0}":{{"dtype":"F32","shape":[500000],"data_offsets":[0,2000000]}}'
    header = ("{" + ",".join(map(entry.format, range(600_000))) + "}").encode()
    path = folder / "model.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(2_000_000))
    return ["count", str(path)]
