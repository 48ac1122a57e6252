"""Checkpoints in several files: their index, shards that are missing or broken, and the links of a
cache.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from checkpoint_models import LLAMA, LLAMA_UNTIED, llama_shapes, names, noted
from checkpoints import write, write_config, write_sharded
from hostile import mutations, rewritten, survives
from tallystick import BadInput, count


def llama_in_shards(folder: Path, **more: Any) -> Path:
    shapes = list(llama_shapes().items())
    write_config(folder, LLAMA)
    return write_sharded(folder, dict(shapes[:10]), dict(shapes[10:20]), dict(shapes[20:]), **more)


def test_shards_are_one_checkpoint(tmp_path: Path):
    index = llama_in_shards(tmp_path)
    for source in (tmp_path, index, str(index)):
        ledger = count(source)
        assert ledger.total == LLAMA_UNTIED
        assert ledger.mismatches == {}
        assert names(ledger) == set(llama_shapes())


def test_one_shard_says_that_it_is_one(tmp_path: Path):
    llama_in_shards(tmp_path)
    ledger = count(tmp_path / "model-00002-of-00003.safetensors")
    assert ledger.total < LLAMA_UNTIED
    assert noted(ledger, "only shard 2 of 3 was counted")
    assert "lm_head.weight" in ledger.mismatches["missing"]


def test_missing_shards_of_an_index_are_named(tmp_path: Path):
    index = llama_in_shards(tmp_path)
    for number in (3, 1):
        (tmp_path / f"model-0000{number}-of-00003.safetensors").unlink()
    with pytest.raises(
        BadInput, match=r"3 shards, of which 2 are missing from its folder: 'model-00001-of-00003.safetensors', 'm"
    ):
        count(index)


@pytest.mark.parametrize(
    "shard",
    [
        "../x.safetensors", "/etc/passwd", "sub/x.safetensors", "./x.safetensors", "..", ".", "", "..\\x", "x/", "//x",
        None, 1, [], {}, ["model-00001-of-00003.safetensors"],
    ],
    ids=repr,
)  # fmt: skip
def test_an_index_names_no_path_outside_its_folder(tmp_path: Path, shard: Any):
    folder = tmp_path / "model"
    (folder / "sub").mkdir(parents=True)
    for place in (tmp_path, folder, folder / "sub"):
        write(place / "x.safetensors", {"extra.weight": (1,)})
    llama_in_shards(folder, weight_map={"extra.weight": shard})
    with pytest.raises(BadInput, match=r"'extra.weight' in .*, which is not a file name in its own folder"):
        count(folder)


@pytest.mark.parametrize(
    "shard", ["x\0.safetensors", "N" * 5000, "\x1b[2J.safetensors", "a\nb.safetensors", "\ud800"], ids=ascii
)
def test_odd_names_of_shards_are_not_there(tmp_path: Path, shard: str):
    index = llama_in_shards(tmp_path, weight_map={"extra.weight": shard})
    with pytest.raises(BadInput, match="4 shards, of which 1 are missing from its folder") as error:
        count(index)
    assert str(error.value).isprintable()
    assert len(str(error.value)) < 300 + len(str(tmp_path))


@pytest.mark.parametrize(
    "index",
    [{}, [], "x", 1, None, {"weight_map": []}, {"weight_map": {}}, {"weight_map": "x"}, {"weight_map": None}],
    ids=repr,
)
def test_an_index_without_a_weight_map(tmp_path: Path, index: Any):
    path = tmp_path / "model.safetensors.index.json"
    path.write_text(json.dumps(index))
    with pytest.raises(BadInput, match="it has no weight_map"):
        count(path)


def test_sums_of_thousands_of_digits_in_an_index_are_said_in_few_words(tmp_path: Path):
    index = write_sharded(tmp_path, {"a.weight": (2,)})
    said = {"total_size": 10**4000, "total_parameters": 10**4000}
    index.write_text(json.dumps({**json.loads(index.read_text()), "metadata": said}))
    notes = count(index).notes
    assert (
        "model.safetensors.index.json says total_size an integer of 13288 bits, but its files hold 8 bytes of tensors"
        in notes
    )
    assert max(map(len, notes)) < 200


@pytest.mark.parametrize("changes", [mutations, rewritten])
def test_a_changed_index_is_counted_or_refused(tmp_path: Path, changes: Any):
    index = write_sharded(tmp_path, {"a.0.weight": (2, 3), "a.1.weight": (2, 3)}, {"b.weight": (3,)}, {"c.weight": ()})
    said = {"metadata": {"total_size": 64, "total_parameters": 16}, **json.loads(index.read_text())}
    assert survives(index, changes(json.dumps(said).encode() if changes is mutations else said, most=100))


def test_an_index_that_puts_a_tensor_where_it_is_not(tmp_path: Path):
    llama_in_shards(tmp_path, weight_map={"absent.weight": "model-00001-of-00003.safetensors"})
    with pytest.raises(
        BadInput, match=r"puts 'absent.weight' in 'model-00001-of-00003.safetensors', which does not hold it"
    ):
        count(tmp_path)


def test_a_tensor_in_two_shards(tmp_path: Path):
    write_sharded(tmp_path, {"a.weight": (2,), "b.weight": (2,)}, {"b.weight": (2,), "c.weight": (2,)})
    with pytest.raises(BadInput, match=r"puts 'b.weight' in 'model-00002-of-00002.safetensors', but 'model-00001-of-"):
        count(tmp_path)


def test_a_tensor_in_two_shards_that_the_index_does_not_list(tmp_path: Path):
    index = write_sharded(tmp_path, {"a.weight": (2,), "b.weight": (2,)}, {"b.weight": (2,), "c.weight": (2,)})
    told = json.loads(index.read_text())
    del told["weight_map"]["b.weight"]
    index.write_text(json.dumps(told))
    with pytest.raises(BadInput, match="two shards hold a tensor with the same name"):
        count(tmp_path)


def test_a_broken_shard_is_named(tmp_path: Path):
    llama_in_shards(tmp_path)
    shard = tmp_path / "model-00002-of-00003.safetensors"
    os.truncate(shard, shard.stat().st_size - 1)
    with pytest.raises(BadInput, match=r"model-00002-of-00003\.safetensors: the file is truncated"):
        count(tmp_path)


def test_a_cache_of_symbolic_links(tmp_path: Path):
    """As huggingface_hub keeps them: names in a snapshot, contents in blobs that are called by
    their hashes.
    """
    blobs, snapshot = tmp_path / "blobs", tmp_path / "snapshots" / "0a1b"
    blobs.mkdir()
    snapshot.mkdir(parents=True)
    llama_in_shards(blobs)
    for number, path in enumerate(sorted(blobs.iterdir())):
        path.rename(blobs / f"{number:040x}")
        (snapshot / path.name).symlink_to(f"../../blobs/{number:040x}")
    ledger = count(snapshot)
    assert ledger.total == LLAMA_UNTIED
    assert ledger.mismatches == {}
    assert ledger.architecture == "llama"


def test_a_link_to_nothing(tmp_path: Path):
    (tmp_path / "model.safetensors").symlink_to("gone")
    with pytest.raises(BadInput, match=r"model\.safetensors: No such file"):
        count(tmp_path)
