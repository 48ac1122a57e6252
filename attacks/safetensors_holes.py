"""A safetensors header of 300,000 tensors with eight numbers each, which fill no grid."""

import random
from pathlib import Path

ANSWER = "would take more than"
HEADER = 21_000_000  # bytes


def attack(folder: Path) -> list[str]:
    """Write the file; the command that reads it."""
    draw = random.Random(1)
    names = {".".join(str(draw.randrange(10)) for _ in range(8)) for _ in range(300_000)}
    entry = '"{0}.w":{{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}'
    header = ("{" + ",".join(map(entry.format, sorted(names))) + "}").encode()
    path = folder / "model.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header)
    return ["count", str(path)]
