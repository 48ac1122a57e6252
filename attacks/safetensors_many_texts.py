"""A safetensors header of a million texts in its metadata, each of which takes far more memory than
its bytes.
"""

from pathlib import Path

ANSWER = "its metadata would take more than"
HEADER = 15_000_000  # bytes


def attack(folder: Path) -> list[str]:
    """Write the file; the command that reads it."""
    tensor = '"t":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}'
    texts = ",".join(f'"{number}":""' for number in range(1_300_000))
    header = ('{"__metadata__":{' + texts + "}," + tensor + "}").encode()
    path = folder / "model.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
    return ["count", str(path)]
