"""A safetensors tensor whose name has 16 MB, which patterns that tell roles by names would look
through for seconds.
"""

from pathlib import Path

ANSWER = "has more than 1,048,576 characters"
HEADER = 16_000_000  # bytes


def attack(folder: Path) -> list[str]:
    """Write the file; the command that reads it."""
    header = ('{"' + "x" * 15_999_900 + '":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}').encode()
    path = folder / "model.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
    return ["count", str(path)]
