"""A safetensors header with one emoji and 40 MB of spaces, which a string of four bytes for each
character would hold.
"""

from pathlib import Path

ANSWER = "1 parameters"
HEADER = 40_000_000  # bytes


def attack(folder: Path) -> list[str]:
    """Write the file; the command that reads it."""
    tensor = '"t":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}'
    header = ('{"__metadata__":{"a":"😀"},' + tensor + "}" + " " * 39_999_900).encode()
    path = folder / "model.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
    return ["count", str(path)]
