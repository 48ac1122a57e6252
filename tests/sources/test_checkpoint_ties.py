"""Tied heads and embeddings of a checkpoint: stored or not, by its config and its metadata."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_model

from checkpoint_models import LLAMA, LLAMA_BODY, llama_shapes, noted, tie_of
from checkpoints import write, write_config
from tallystick import count


def test_a_tied_head_that_is_not_stored(tmp_path: Path):
    write(tmp_path / "model.safetensors", llama_shapes(head=False))
    write_config(tmp_path, {**LLAMA, "tie_word_embeddings": True})
    ledger = count(tmp_path)
    assert (ledger.total, ledger.totals["by_name"]) == (LLAMA_BODY + 160, LLAMA_BODY + 320)
    assert tie_of(ledger) == (("model.embed_tokens.weight", "lm_head.weight"), "tied", 160)
    assert ledger.mismatches == {}


def test_a_tied_head_that_is_stored(tmp_path: Path):
    """Whether the two are equal, no header tells: counted once, as the config says, and said."""
    write(tmp_path / "model.safetensors", llama_shapes())
    write_config(tmp_path, {**LLAMA, "tie_word_embeddings": True})
    ledger = count(tmp_path)
    assert (ledger.total, ledger.totals["by_name"]) == (LLAMA_BODY + 160, LLAMA_BODY + 320)
    assert ledger.totals["stored"] == LLAMA_BODY + 320
    assert tie_of(ledger) == (("model.embed_tokens.weight", "lm_head.weight"), "unknown", 160)
    assert noted(ledger, "lm_head.weight is stored although the config ties it to model.embed_tokens.weight")
    assert ledger.mismatches == {}


def test_a_head_of_another_shape_cannot_be_the_tied_one(tmp_path: Path):
    shapes = llama_shapes()
    shapes["lm_head.weight"] = [24, 8]
    write(tmp_path / "model.safetensors", shapes)
    write_config(tmp_path, {**LLAMA, "tie_word_embeddings": True})
    ledger = count(tmp_path)
    assert ledger.total == LLAMA_BODY + 160 + 24 * 8
    assert ledger.ties == ()
    assert ledger.mismatches == {"misshaped": ("lm_head.weight: (24, 8), but (20, 8) in the config",)}


def test_a_tied_embedding_that_is_not_stored(tmp_path: Path):
    """Some savers keep the head and drop the embedding."""
    write(tmp_path / "model.safetensors", llama_shapes(embedding=False))
    write_config(tmp_path, {**LLAMA, "tie_word_embeddings": True})
    ledger = count(tmp_path)
    assert ledger.total == LLAMA_BODY + 160
    assert set(tie_of(ledger)[0]) == {"model.embed_tokens.weight", "lm_head.weight"}
    assert tie_of(ledger)[1:] == ("tied", 160)
    assert ledger.mismatches == {}
    assert ledger.totals["embedding"] == 160


def test_neither_side_of_a_tie_is_stored(tmp_path: Path):
    write(tmp_path / "model.safetensors", llama_shapes(head=False, embedding=False))
    write_config(tmp_path, {**LLAMA, "tie_word_embeddings": True})
    ledger = count(tmp_path)
    assert ledger.total == LLAMA_BODY
    assert set(ledger.mismatches["missing"]) == {"model.embed_tokens.weight", "lm_head.weight"}


def test_an_untied_head_that_is_missing(tmp_path: Path):
    write(tmp_path / "model.safetensors", llama_shapes(head=False))
    write_config(tmp_path, LLAMA)
    ledger = count(tmp_path)
    assert ledger.total == LLAMA_BODY + 160
    assert ledger.ties == ()
    assert ledger.mismatches == {"missing": ("lm_head.weight",)}
    assert noted(ledger, "1 tensor is in the config but missing: lm_head.weight")


def test_metadata_that_names_a_tie(tmp_path: Path):
    """`safetensors.torch.save_model` keeps one name of a shared tensor and notes the others."""
    model = torch.nn.ModuleDict({"wte": torch.nn.Embedding(5, 3), "lm_head": torch.nn.Linear(3, 5, bias=False)})
    model["lm_head"].weight = model["wte"].weight
    save_model(model, str(tmp_path / "model.safetensors"))
    ledger = count(tmp_path / "model.safetensors")
    assert ledger.total == 15
    assert ledger.totals["by_name"] == 30
    assert set(tie_of(ledger)[0]) == {"wte.weight", "lm_head.weight"}
    assert tie_of(ledger)[1:] == ("tied", 15)
    assert {entry.name: entry.role for entry in ledger.entries} == {
        "wte.weight": "token_embedding",
        "lm_head.weight": "head",
    }
    assert not noted(ledger, "no LM head is stored")


def test_metadata_that_names_a_tie_beside_a_config(tmp_path: Path):
    metadata = {"format": "pt", "lm_head.weight": "model.embed_tokens.weight"}
    write(tmp_path / "model.safetensors", llama_shapes(head=False), metadata=metadata)
    write_config(tmp_path, {**LLAMA, "tie_word_embeddings": True})
    ledger = count(tmp_path)
    assert (ledger.total, ledger.totals["by_name"]) == (LLAMA_BODY + 160, LLAMA_BODY + 320)
    assert tie_of(ledger) == (("model.embed_tokens.weight", "lm_head.weight"), "tied", 160)


def test_metadata_that_contradicts_an_untied_config(tmp_path: Path):
    """Loaded by the config the head would be made anew: the file's word for the tie does not hide
    that.
    """
    metadata = {"lm_head.weight": "model.embed_tokens.weight"}
    write(tmp_path / "model.safetensors", llama_shapes(head=False), metadata=metadata)
    write_config(tmp_path, LLAMA)
    ledger = count(tmp_path)
    assert ledger.total == LLAMA_BODY + 160
    assert ledger.mismatches["missing"] == ("lm_head.weight",)


@pytest.mark.parametrize(
    "metadata",
    [{"format": "pt"}, {"gone": "absent"}, {"wte.weight": "wpe.weight"}, {"wte.weight": "wte.weight"}],
    ids=str,
)
def test_metadata_that_names_no_tie(tmp_path: Path, metadata: dict[str, str]):
    write(tmp_path / "model.safetensors", {"wte.weight": (3, 2), "wpe.weight": (3, 2)}, metadata=metadata)
    ledger = count(tmp_path)
    assert ledger.total == ledger.totals["by_name"] == 12
    assert ledger.ties == ()
