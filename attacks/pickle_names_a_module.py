"""A `pytorch_model.bin` whose config is of a class of a module in the same folder, which runs code
as it is imported.
"""

import sys
import types
from pathlib import Path

ANSWER = "its pickle names payload.Config: nothing was imported or run"


def attack(folder: Path) -> list[str]:
    """Write the files; the command that reads one."""
    import torch

    (folder / "payload.py").write_text("open('canary', 'w')\n")
    module = sys.modules["payload"] = types.ModuleType("payload")
    module.Config = type("Config", (), {"__module__": "payload"})
    path = folder / "pytorch_model.bin"
    try:
        torch.save({"model": {"weight": torch.zeros(1)}, "config": module.Config()}, path)
    finally:
        del sys.modules["payload"]
    return ["count", str(path)]
