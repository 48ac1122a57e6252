"""An index of a million shards that are not there."""

from pathlib import Path

ANSWER = "its values would take more than"
HEADER = 35_000_000  # bytes


def attack(folder: Path) -> list[str]:
    """Write the file; the command that reads it."""
    path = folder / "model.safetensors.index.json"
    path.write_text(
        '{"weight_map":{' + ",".join(f'"{number}":"s{number}.safetensors"' for number in range(1_000_000)) + "}}"
    )
    return ["count", str(path)]
