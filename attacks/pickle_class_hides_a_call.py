"""A `pytorch_model.bin` whose config, of a class of nobody's, has a field that calls `os.system` as
it is loaded.
"""

import os
import sys
import types
from pathlib import Path

ANSWER = "posix.system"


class _Payload:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("touch canary",)


def attack(folder: Path) -> list[str]:
    """Write the file; the command that reads it."""
    import torch

    module = sys.modules["theirs"] = types.ModuleType("theirs")
    module.Config = type("Config", (), {"__module__": "theirs"})
    config = module.Config()
    config.width = _Payload()
    path = folder / "pytorch_model.bin"
    try:
        torch.save({"model": {"weight": torch.zeros(1)}, "config": config}, path)
    finally:
        del sys.modules["theirs"]
    return ["count", str(path)]
