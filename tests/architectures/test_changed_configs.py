"""Configs that are changed, by the bytes and by the values: what they say is counted, or refused in
one line.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from drawing import some
from hostile import mutations, rewritten, survives
from native import NATIVE, small
from nesting import nested
from tallystick import architectures
from tallystick.core.config import Key
from tallystick.files.texts import read_json
from tallystick.sources.configs.config import ledger_from_config


def every_key(model_type: str) -> dict[str, Any]:
    """A small config of a type that says each key that the type reads."""
    family = architectures.find(model_type)
    stated = {
        name: key.default if isinstance(key, Key) else key for name, key in {**family.keys, **family.running}.items()
    }
    return nested({**stated, **small(model_type), "model_type": model_type})


def read(path: Path) -> object:
    return ledger_from_config(read_json(path), {}, source=str(path)).totals


@pytest.mark.parametrize("model_type", some(NATIVE, 12))
def test_a_config_with_other_values_is_counted_or_refused(tmp_path: Path, model_type: str):
    assert survives(tmp_path / "config.json", rewritten(every_key(model_type), most=20), read=read)


def test_a_config_with_other_bytes_is_counted_or_refused(tmp_path: Path):
    content = json.dumps(every_key("llama")).encode()
    assert survives(tmp_path / "config.json", mutations(content, most=200), read=read)
