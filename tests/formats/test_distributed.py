"""Folders of torch.distributed.checkpoint, read by their .metadata, which is a pickle that nobody
runs.
"""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.filesystem import _StorageInfo
from torch.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    TensorStorageMetadata,
)

import tallystick
from checkpoint_models import noted, parameters, small_model
from checkpoints import write_config
from distributed_files import ROWS, sharded, write
from hostile import memory_of, mutations, refusal, refused_at_every_byte, survives
from tallystick import count


@pytest.mark.filterwarnings("ignore")
def test_what_torch_saves_of_a_run(tmp_path: Path):
    model = small_model("llama")
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.zeros(1, 3, dtype=torch.long)).logits.sum().backward()
    optimizer.step()
    state = {"model": model.state_dict(), "optim": optimizer.state_dict(), "step": 3}
    dcp.save(state, checkpoint_id=tmp_path / "run", no_dist=True)
    model.config.save_pretrained(tmp_path / "run")
    for source in (tmp_path / "run", tmp_path / "run/.metadata"):
        ledger = count(source)
        assert (ledger.kind, ledger.architecture) == ("distributed", "llama")
        assert ledger.total == parameters(model)
        assert ledger.mismatches == {}
        assert noted(ledger, "counted the tensors under 'model', not the other entries: 'optim'")
    (tmp_path / "run/config.json").unlink()
    assert count(tmp_path / "run").total == parameters(model)


@pytest.mark.filterwarnings("ignore")
def test_a_model_saved_without_anything_around_it(tmp_path: Path):
    state = {
        "wte.weight": torch.zeros(5, 4),
        "h.0.b": torch.zeros(4, dtype=torch.bfloat16),
        "optimizer.state.m": torch.zeros(9),
    }
    dcp.save(state, checkpoint_id=tmp_path, no_dist=True)
    assert count(tmp_path).by("tensor") == {"wte.weight": 20, "h.0.b": 4}
    assert count(tmp_path).by("dtype") == {"float32": 20, "bfloat16": 4}
    assert noted(count(tmp_path), "not counted: 'optimizer'")


@pytest.mark.filterwarnings("ignore")
def test_values_are_not_compared(tmp_path: Path):
    weight = torch.randn(6, 4)
    dcp.save({"transformer.wte.weight": weight, "lm_head.weight": weight}, checkpoint_id=tmp_path, no_dist=True)
    assert [group.relation for group in tallystick.ties(tmp_path).groups] == ["unknown"]
    config = {"model_type": "gpt2", "n_embd": 4, "n_head": 1, "n_layer": 1, "vocab_size": 6, "n_positions": 2}
    write_config(tmp_path, config)
    group = tallystick.ties(tmp_path).groups[0]
    assert (group.relation, group.why) == ("unknown", "transformer.wte.weight is not stored contiguously")


# -- by hand --------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_shards_of_several_ranks_are_one_tensor(tmp_path: Path, protocol: int):
    twice = sharded((2,), ((0,), (2,)), ((0,), (2,)))  # held alike by two ranks
    write(tmp_path, {"w": ROWS, "b": twice, "step": BytesStorageMetadata()}, protocol=protocol)
    assert count(tmp_path).by("tensor") == {"w": 12, "b": 2}
    assert count(tmp_path).totals["bytes"] == 28


@pytest.mark.parametrize(
    ("tensors", "more", "message"),
    [
        ({"w": sharded((4, 3), ((0, 0), (2, 3)))}, {}, "the shards of 'w' have 6 elements, and it has 12"),
        ({"w": sharded((4, 3), ((3, 0), (2, 3)))}, {}, "a shard of 'w' extends past the tensor"),
        ({"w": sharded((4, 3), ((0,), (4,)))}, {}, "a shard of 'w' has a different number of dimensions"),
        ({"w": sharded((2**40, 2**40), ((0, 0), (2**40, 2**40)))}, {}, "more than 2^63 elements"),
        ({"w": TensorStorageMetadata(None, torch.Size((1,)), [])}, {}, "the shards of 'w' have 0 elements"),
        ({"w": TensorStorageMetadata(None, torch.Size(()), [ChunkStorageMetadata(torch.Size(()), torch.Size(()))])}, {}, "an invalid dtype"),
        ({"w": TensorStorageMetadata(None, "x", [])}, {}, "an invalid shape"),
        ({"w": TensorStorageMetadata(None, torch.Size((1,)), None)}, {}, "has no list of shards"),
        ({}, {}, "it holds no tensors"),
        ({"step": BytesStorageMetadata()}, {}, "it holds no tensors"),
        ({"a": ROWS, "a.b": ROWS}, {"paths": {"a.b": ("a", "b"), "a": ("a",)}}, "nested in another"),
        ({"a": ROWS, "b": ROWS}, {"paths": {"a": ("model", "w"), "b": ("model", "w")}}, "two tensors named 'w'"),
        ({"a": ROWS}, {"paths": {"a": ("model",) * 100}}, "nests more than 32 dictionaries"),
        ({"w": ROWS}, {"places": {MetadataIndex("w"): _StorageInfo("../secret", 0, 1)}}, "'../secret', which is not a name in its own folder"),
        ({"w": ROWS}, {"places": {MetadataIndex("w"): _StorageInfo("/etc/passwd", 0, 1)}}, "'/etc/passwd', which is not a name in its own folder"),
        ({"w": ROWS}, {"places": {MetadataIndex("w"): _StorageInfo("__9_0.distcp", 0, 1)}}, "'__9_0.distcp' is missing from its folder"),
        ({"w": ROWS}, {"places": {MetadataIndex("w"): _StorageInfo("__0_0.distcp", 60, 41)}}, "ends at byte 101 of '__0_0.distcp', which has 100"),
        ({"w": ROWS}, {"places": {MetadataIndex("w"): _StorageInfo("__0_0.distcp", 0, 10**5000)}}, "does not name a shard's file"),
        ({"w": ROWS}, {"places": {"w": "here"}}, "lacks a _StorageInfo"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(tmp_path: Path, tensors: dict[str, Any], more: dict[str, Any], message: str):
    assert message in refusal(write(tmp_path, tensors, **more))


class Trap:
    def __reduce__(self) -> Any:
        return os.system, ("touch sprung",)


@pytest.mark.parametrize(
    "what", [Trap(), {"a": Trap()}, Metadata({"w": Trap()}), torch.nn.Linear(1, 1), {"w": torch.zeros(2)}]
)
def test_what_it_would_run_is_named_and_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: Any):
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".metadata").write_bytes(pickle.dumps(what))
    assert "its pickle names GLOBAL" in refusal(tmp_path)
    assert "nothing was run" in refusal(tmp_path)
    assert not (tmp_path / "sprung").exists()


def test_other_pickles_are_refused(tmp_path: Path):
    for value in (1, {"w": 1}, Metadata(None), Metadata([])):  # type: ignore[arg-type]
        (tmp_path / ".metadata").write_bytes(pickle.dumps(value))
        assert "it lacks a Metadata where one is expected" in refusal(tmp_path) or "it lists no tensors" in refusal(
            tmp_path
        )
    (tmp_path / ".metadata").write_bytes(b"\x80\x04" + b"N0" * (9 << 20) + b".")
    assert "more than the 16,777,216 that are read" in refusal(tmp_path)
    assert memory_of(tmp_path) < 20_000_000


def test_metadata_cut_off_at_any_byte_is_refused(tmp_path: Path):
    write(tmp_path, {"w": ROWS})
    content = (tmp_path / ".metadata").read_bytes()
    refused_at_every_byte(tmp_path / ".metadata", content)


def test_changed_metadata_is_counted_or_refused(tmp_path: Path):
    write(tmp_path, {"model.w": ROWS}, paths={"model.w": ("model", "w")})
    assert survives(tmp_path / ".metadata", mutations((tmp_path / ".metadata").read_bytes(), most=400))
