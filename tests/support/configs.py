"""Small random configs of every native type that transformers builds: the families of each
``families_*.py``.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from hypothesis.strategies import SearchStrategy

from drawing import Config, Family

FAMILIES: dict[str, Family] = {}
for path in sorted(Path(__file__).parent.glob("families_*.py")):
    FAMILIES |= import_module(path.stem).FAMILIES

CONFIGS: dict[str, SearchStrategy[Config]] = {model_type: family.drawn for model_type, family in FAMILIES.items()}
