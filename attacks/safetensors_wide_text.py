"""A safetensors header with 40 MB of metadata, one character of which makes a string take four
bytes for each.
"""

from pathlib import Path

ANSWER = "has more than 8,388,608 characters"
HEADER = 40_000_000  # bytes


def attack(folder: Path) -> list[str]:
    """Write the file; the command that reads it."""
    tensor = '"t":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}'
    header = ('{"__metadata__":{"a":"' + "x" * 39_999_900 + '😀"},' + tensor + "}").encode()
    path = folder / "model.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
    return ["count", str(path)]
