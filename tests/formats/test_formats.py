"""The registry of formats: what each format's own library writes is known by its bytes, read by its
reader, and opened once.
"""

from __future__ import annotations

import os
import struct
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed.checkpoint as dcp
from gguf import GGUFWriter
from safetensors.numpy import save_file

from checkpoints import gpt2_published, write_config, write_sharded
from tallystick import BadInput, count
from tallystick.files.local import opened
from tallystick.formats import FORMATS, read_weights

VALUES = {"a.weight": np.zeros((3, 4), np.float32), "b.weight": np.zeros((5,), np.float32)}
PARAMETERS = 3 * 4 + 5


def write_gguf(path: Path) -> None:
    writer = GGUFWriter(path, "llama")
    for name, values in VALUES.items():
        writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_torch(path: Path, **how: Any) -> None:
    torch.save({name: torch.from_numpy(values) for name, values in VALUES.items()}, path, **how)


def write_distributed(path: Path) -> None:
    tensors = {name: torch.from_numpy(values) for name, values in VALUES.items()}
    dcp.save(tensors, checkpoint_id=path.parent, no_dist=True)


def write_llama2c(path: Path) -> None:
    d, inner, layers, heads, vocabulary, context = 4, 6, 1, 2, 5, 3
    values = vocabulary * d + layers * (2 * d + 4 * d * d + 3 * d * inner) + d + context * (d // heads)
    path.write_bytes(struct.pack("<7i", d, inner, layers, heads, heads, vocabulary, context) + bytes(4 * values))


WRITTEN: dict[str, tuple[str, Callable[[Path], object], int]] = {
    "safetensors": ("a.safetensors", lambda path: save_file(VALUES, path), PARAMETERS),
    "gguf": ("a.gguf", write_gguf, PARAMETERS),
    "npz": ("a.npz", lambda path: np.savez(path, **VALUES), PARAMETERS),
    "torch_save": ("a.bin", write_torch, PARAMETERS),
    "torch_save, the old form": (
        "a.pt",
        lambda path: write_torch(path, _use_new_zipfile_serialization=False),
        PARAMETERS,
    ),
    "distributed": (".metadata", write_distributed, PARAMETERS),
    # By hand: 5 × 4, two norms, four matrices of 4 × 4, three of 4 × 6, and a last norm.
    "llama2c": ("a.bin", write_llama2c, 20 + 8 + 64 + 72 + 4),
}
# Zip archives and pickles, and a length that begins with a pickle's byte: names tell these apart.
ALIKE = {
    "safetensors": {"torch_save", "distributed"},
    "npz": {"torch_save"},
    "torch_save": {"npz"},
    "torch_save, the old form": {"distributed"},
    "distributed": {"torch_save"},
}


@pytest.mark.parametrize("kind", WRITTEN)
def test_a_file_is_known_by_its_bytes(tmp_path: Path, kind: str) -> None:
    name, write, _ = WRITTEN[kind]
    write(tmp_path / name)
    with opened(tmp_path / name) as file:
        known = {one.name for one in FORMATS if one.reader.sniff(file)}
    own = kind.partition(",")[0]
    assert own in known
    assert known - {own} <= ALIKE.get(kind, set())


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each file is opened, by its name."""
    found: Counter[str] = Counter()
    really = os.open

    def watched(path: Any, *rest: Any, **more: Any) -> int:
        found[Path(path).name] += 1
        return really(path, *rest, **more)

    monkeypatch.setattr(os, "open", watched)
    return found


@pytest.mark.parametrize("kind", WRITTEN)
def test_it_is_opened_once(tmp_path: Path, kind: str, asked: Counter[str]) -> None:
    name, write, parameters = WRITTEN[kind]
    write(tmp_path / name)
    asked.clear()
    assert count(tmp_path / name).total == parameters
    assert asked[name] == 1


@pytest.mark.parametrize("part", [None, "text"])
def test_of_a_folder_each_file_is_opened_once(tmp_path: Path, part: str | None, asked: Counter[str]) -> None:
    shapes = gpt2_published(layers=2, width=32, vocabulary=40, positions=8)
    half = len(shapes) // 2
    one, other = (dict(pairs) for pairs in ((*shapes.items(),)[:half], (*shapes.items(),)[half:]))
    write_sharded(tmp_path, one, other)
    config = {"model_type": "gpt2", "vocab_size": 40, "n_positions": 8, "n_embd": 32, "n_layer": 2, "n_head": 4}
    write_config(tmp_path, {"text_config": config} if part else config)
    asked.clear()
    assert count(tmp_path, part=part).total == (40 + 8) * 32 + 2 * (12 * 32 * 32 + 13 * 32) + 64
    assert asked == dict.fromkeys([path.name for path in tmp_path.iterdir()], 1)


def test_a_format_that_is_not_read_is_known_before_its_numbers_are_tried(tmp_path: Path) -> None:
    write_llama2c(tmp_path / "openvino_model.bin")
    (tmp_path / "openvino_model.xml").write_text("<net/>")
    with pytest.raises(BadInput, match="holds OpenVINO weights, which are not supported"):
        read_weights(tmp_path / "openvino_model.bin")


@pytest.mark.parametrize("name", ["a.safetensors", "a.gguf", "a.npz", "a.pt", "a.bin", ".metadata"])
def test_bytes_of_no_format_are_refused_by_every_reader(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"once upon a time there was a file of text")
    with opened(tmp_path / name) as file:
        assert not any(one.reader.sniff(file) for one in FORMATS)
    with pytest.raises(BadInput) as caught:
        read_weights(tmp_path / name)
    assert "\n" not in str(caught.value)
