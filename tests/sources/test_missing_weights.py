"""Weights that are not there: pointers, half uploads, and an index alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from checkpoint_models import FLOAT32, LLAMA, LLAMA_BODY, LLAMA_UNTIED, llama_shapes, noted, refused, sharded
from checkpoints import write_config, write_sharded
from tallystick import count, ties


def pointer(path: Path, size: int) -> None:
    path.write_text(f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize {size}\n")


def test_a_pointer_in_place_of_the_weights(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    write_config(tmp_path, FLOAT32)
    pointer(tmp_path / "model.safetensors", 4 * LLAMA_UNTIED + 2000)
    ledger = count(tmp_path)
    assert (ledger.kind, ledger.total) == ("config", LLAMA_UNTIED)
    assert ledger.notes == (
        f"model.safetensors is a Git LFS pointer to {4 * LLAMA_UNTIED + 2000:,} bytes: counted from the"
        " config; run `git lfs pull` for the files",
    )
    answer = ties(tmp_path)
    assert answer.verdict == "unknown"
    assert answer.notes == ledger.notes
    assert "is a Git LFS pointer" in refused(capsys, "count", str(tmp_path / "model.safetensors"))


@pytest.mark.parametrize("name", ["weights.safetensors", "pytorch_model.bin", "weights.bin"])
def test_a_pointer_by_another_name(tmp_path: Path, name: str):
    write_config(tmp_path, FLOAT32)
    pointer(tmp_path / name, 4 * LLAMA_UNTIED + 2000)
    assert noted(count(tmp_path), f"{name} is a Git LFS pointer to {4 * LLAMA_UNTIED + 2000:,} bytes")


def test_a_pointer_to_more_than_the_config_describes(tmp_path: Path):
    """As where a head is stored that the config ties."""
    write_config(tmp_path, FLOAT32)
    pointer(tmp_path / "model.safetensors", 4 * LLAMA_UNTIED + 2_000_000)
    assert noted(count(tmp_path), "2,000,000 bytes more than the config's model")


def test_pointers_in_place_of_shards(tmp_path: Path):
    sharded(tmp_path)
    for number in (1, 2):
        pointer(tmp_path / f"model-0000{number}-of-00002.safetensors", 2 * LLAMA_UNTIED)
    ledger = count(tmp_path)
    assert ledger.total == LLAMA_UNTIED
    assert noted(ledger, f"2 of 2 weight files are Git LFS pointers, together to {4 * LLAMA_UNTIED:,} bytes")
    assert len(ledger.notes) == 1


def test_pointers_without_a_config_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    pointer(tmp_path / "model.safetensors", 1000)
    assert "is a Git LFS pointer, not the file itself" in refused(capsys, "count", str(tmp_path))


@pytest.mark.parametrize("indexed", [True, False], ids=["with its index", "before its index"])
def test_an_upload_that_stopped_half_way(tmp_path: Path, capsys: pytest.CaptureFixture[str], indexed: bool):
    """39 of 162 shards."""
    shapes = {f"model.layers.{layer}.mlp.up_proj.weight": (12, 8) for layer in range(162)}
    index = write_sharded(tmp_path, *({name: shape} for name, shape in shapes.items()))
    for number in range(40, 163):
        (tmp_path / f"model-{number:05}-of-00162.safetensors").unlink()
    if not indexed:
        index.unlink()
    else:
        assert "names 162 shards, of which 123 are missing from its folder" in refused(capsys, "count", str(index))
        assert "of which 123 are missing from its folder" in refused(capsys, "count", str(tmp_path))
    write_config(tmp_path, LLAMA)
    ledger = count(tmp_path)
    assert ledger.total == LLAMA_UNTIED
    assert ledger.notes[0] == (
        "39 of 162 weight files are present, not 'model-00040-of-00162.safetensors' to"
        " 'model-00162-of-00162.safetensors': counted from the config"
    )
    assert ties(tmp_path).verdict == "unknown"


def test_an_index_alone_is_set_against_the_config(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    index = tmp_path / "model.safetensors.index.json"
    names = {**dict.fromkeys(llama_shapes(head=False), "a.safetensors"), "model.layers.0.extra.weight": "b.safetensors"}
    index.write_text(json.dumps({"weight_map": names}))
    assert "names 2 shards, of which 2 are missing from its folder" in refused(capsys, "count", str(tmp_path))
    write_config(tmp_path, FLOAT32)
    ledger = count(tmp_path)
    assert ledger.total == LLAMA_UNTIED
    assert ledger.notes == (
        "0 of 2 weight files are present, not 'a.safetensors', 'b.safetensors': counted from the config",
        "1 tensors are in the config but not in the index: lm_head.weight",
        "1 tensors are in the index but not in the config: model.layers.0.extra.weight",
    )


def test_an_index_alone_that_names_a_head_which_the_config_ties(tmp_path: Path):
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": dict.fromkeys(llama_shapes(), "a.safetensors")}))
    write_config(tmp_path, {**LLAMA, "tie_word_embeddings": True})
    ledger = count(tmp_path)
    assert ledger.total == LLAMA_BODY + 160
    assert noted(ledger, "lm_head.weight is stored although the config ties it to model.embed_tokens.weight")


def test_an_index_with_the_marks_of_a_merge(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    index = sharded(tmp_path)
    written = json.dumps(json.loads(index.read_text()), indent=2)
    index.write_text(f"<<<<<<< HEAD\n{written}\n=======\n{written}\n>>>>>>> refs/pr/1\n")
    said = refused(capsys, "count", str(tmp_path))
    assert "index.json is not JSON: unresolved merge conflict '<<<<<<< HEAD' in line 1" in said
    index.write_text(f"{written}\n=======\n{written}\n")
    assert "merge conflict '=======' in line" in refused(capsys, "count", str(tmp_path))


def test_an_index_of_two_documents_is_refused_where_the_second_begins(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    index = sharded(tmp_path)
    index.write_text("{}\n{}")
    assert "is not JSON: Extra data at line 2 column 1" in refused(capsys, "count", str(tmp_path))
