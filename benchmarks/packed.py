"""Who counts a packed model right: a tiny Llama as each library packs it, and each tool's count of
the folder.

    python benchmarks/packed.py

The truth is the number of parameters of the model that transformers builds. The other tools read
headers, as tallystick does: each is given the header in the way in which its own source reads it.
Exits with 1 if tallystick is wrong.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))

Header = Mapping[str, Mapping[str, Any]]


def by_tallystick(folder: Path, _: Header) -> int:
    """The folder's unique parameters."""
    import tallystick

    return tallystick.count(folder).total


def by_the_hub(_: Path, header: Header) -> int:
    """What the pages of the hub show: huggingface_hub's `parameter_count`, all dtypes together."""
    from huggingface_hub.utils import SafetensorsFileMetadata, TensorInfo

    tensors = {
        name: TensorInfo(dtype=one["dtype"], shape=one["shape"], data_offsets=tuple(one["data_offsets"]))
        for name, one in header.items()
    }
    return sum(SafetensorsFileMetadata(metadata={}, tensors=tensors).parameter_count.values())


def by_hf_mem(_: Path, header: Header) -> int:
    """Its `param_count`, from which it computes memory."""
    from hf_mem.safetensors.metadata import parse_safetensors_metadata

    return parse_safetensors_metadata({"Transformer": header}).param_count


TOOLS: dict[str, Callable[[Path, Header], int]] = {
    "tallystick": by_tallystick,
    "huggingface_hub": by_the_hub,
    "hf-mem": by_hf_mem,
}


def header_of(folder: Path) -> Header:
    """The header of a folder's one file."""
    with (folder / "model.safetensors").open("rb") as file:
        tensors = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    return {name: one for name, one in tensors.items() if name != "__metadata__"}


def main() -> int:
    """Print each tool's count of each folder, and how many are right."""
    from packings import LAYOUTS, OWN, folder_of

    table = Table("packed by", *TOOLS, title=f"parameters of a Llama that has {OWN:,}")
    right = dict.fromkeys(TOOLS, 0)
    with tempfile.TemporaryDirectory() as folder:
        for name, (layout, _, more) in LAYOUTS.items():
            place = folder_of(Path(folder) / name, layout, **more)
            counts = {tool: count(place, header_of(place)) for tool, count in TOOLS.items()}
            for tool, count in counts.items():
                right[tool] += count == OWN
            table.add_row(name, *(f"{count:,}" if count == OWN else f"{count:,} wrong" for count in counts.values()))
    table.add_section()
    table.add_row(f"right, of {len(LAYOUTS)}", *map(str, right.values()))
    Console().print(table)
    return int(right["tallystick"] < len(LAYOUTS))


if __name__ == "__main__":
    sys.exit(main())
