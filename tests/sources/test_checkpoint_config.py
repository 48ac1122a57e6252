"""A checkpoint and the config next to it: where they disagree, names under other prefixes,
overrides.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from checkpoint_models import (
    LLAMA,
    LLAMA_BODY,
    LLAMA_UNTIED,
    TINY,
    TINY_SHAPES,
    TINY_UNIQUE,
    llama_shapes,
    noted,
    tie_of,
)
from checkpoints import gpt2_published, write, write_config
from tallystick import BadInput, count

# -- where a file and its config disagree ---------------------------------------------------------


def test_disagreements_are_named(tmp_path: Path):
    shapes = dict(llama_shapes())
    del shapes["model.layers.1.mlp.up_proj.weight"]
    shapes["model.layers.2.mlp.down_proj.weight"] = (8, 13)
    shapes["model.layers.0.self_attn.q_proj.bias"] = (8,)
    shapes["value_head.weight"] = (1, 8)
    write(tmp_path / "model.safetensors", shapes)
    write_config(tmp_path, LLAMA)
    ledger = count(tmp_path)
    assert {kind: set(found) for kind, found in ledger.mismatches.items()} == {
        "missing": {"model.layers.1.mlp.up_proj.weight"},
        "unexpected": {"model.layers.0.self_attn.q_proj.bias", "value_head.weight"},
        "misshaped": {"model.layers.2.mlp.down_proj.weight: (8, 13), but (8, 12) in the config"},
    }
    assert ledger.total == LLAMA_UNTIED - 96 + 8 + 8 + 8
    assert ledger.to_dict()["mismatches"] == {kind: list(found) for kind, found in ledger.mismatches.items()}
    for words in (
        "1 tensor is in the config but missing",
        "2 tensors are stored but not in",
        "1 tensor is of another shape",
    ):
        assert noted(ledger, words)


def test_a_resized_embedding(tmp_path: Path):
    """Tokens were added and the config was left as it was."""
    shapes = {**llama_shapes(), "model.embed_tokens.weight": (22, 8), "lm_head.weight": (22, 8)}
    write(tmp_path / "model.safetensors", shapes)
    write_config(tmp_path, LLAMA)
    ledger = count(tmp_path)
    assert ledger.total == LLAMA_UNTIED + 2 * 16
    assert set(ledger.mismatches) == {"misshaped"}
    assert len(ledger.mismatches["misshaped"]) == 2
    assert ledger.by("role")["head"] == ledger.by("role")["token_embedding"] == 176


@pytest.mark.parametrize(("layers", "kind"), [(2, "unexpected"), (4, "missing")])
def test_another_number_of_layers(tmp_path: Path, layers: int, kind: str):
    write(tmp_path / "model.safetensors", llama_shapes())
    write_config(tmp_path, {**LLAMA, "num_hidden_layers": layers})
    ledger = count(tmp_path)
    assert ledger.total == LLAMA_UNTIED
    assert set(ledger.mismatches) == {kind}
    assert set(ledger.mismatches[kind]) == {
        name.replace(".2.", f".{max(layers - 1, 2)}.") for name in llama_shapes() if ".2." in name
    }
    assert ledger.by("role") == count(LLAMA).by("role")


def test_a_bare_body_with_a_head(tmp_path: Path):
    """The head stands outside the model, so its name is the same with and without the prefix."""
    write(tmp_path / "model.safetensors", {**TINY_SHAPES, "lm_head.weight": (20, 8)})
    write_config(tmp_path, {**TINY, "tie_word_embeddings": False})
    ledger = count(tmp_path)
    assert ledger.total == TINY_UNIQUE + 160
    assert ledger.mismatches == {}
    assert ledger.by("role")["head"] == 160


def test_a_bare_body_beside_a_config(tmp_path: Path):
    """A base model's file has no `model.` before its names."""
    write(tmp_path / "model.safetensors", llama_shapes(prefix="", head=False))
    write_config(tmp_path, {**LLAMA, "tie_word_embeddings": True})
    ledger = count(tmp_path)
    assert ledger.total == LLAMA_BODY + 160
    assert ledger.mismatches == {}
    assert tie_of(ledger)[:2] == (("embed_tokens.weight", "lm_head.weight"), "tied")


@pytest.mark.parametrize(
    "prefix",
    ["module.", "_orig_mod.", "base_model.model.", "module._orig_mod.", "_orig_mod.module.", "_fsdp_wrapped_module."],
)
def test_a_wrappers_prefix(tmp_path: Path, prefix: str):
    write(tmp_path / "model.safetensors", {f"{prefix}{name}": shape for name, shape in llama_shapes().items()})
    write_config(tmp_path, LLAMA)
    ledger = count(tmp_path)
    assert ledger.total == LLAMA_UNTIED
    assert ledger.mismatches == {}
    assert ledger.by("role") == count(LLAMA).by("role")
    # PEFT's prefix is that of a model which transformers knows how to load; the others' is found by
    # nobody.
    warned = any(f"every name begins with {prefix!r}" in note for note in ledger.notes)
    assert warned == ("module." in prefix or "_orig_mod." in prefix)


def test_a_wrappers_prefix_before_names_that_lack_the_bodys(tmp_path: Path):
    """GPT-2 is published without `transformer.`; wrapped and saved, its names need one prefix off
    and one on.
    """
    shapes = gpt2_published(layers=1, width=8, vocabulary=20, positions=16)
    write(tmp_path / "model.safetensors", {f"module._orig_mod.{name}": shape for name, shape in shapes.items()})
    config = {"model_type": "gpt2", "n_layer": 1, "n_embd": 8, "n_head": 2, "vocab_size": 20, "n_positions": 16}
    write_config(tmp_path, config)
    ledger = count(tmp_path)
    assert (ledger.total, ledger.mismatches) == (count(config).total, {})
    assert tie_of(ledger)[1] == "tied"


def test_a_head_under_the_bodys_prefix(tmp_path: Path):
    """Loaders take `model.lm_head.weight` for `lm_head.weight`, unless that is there too."""
    shapes = llama_shapes()
    misnamed = {("model." + name if name == "lm_head.weight" else name): shape for name, shape in shapes.items()}
    write(tmp_path / "model.safetensors", misnamed)
    write_config(tmp_path, LLAMA)
    ledger = count(tmp_path)
    assert (ledger.total, ledger.mismatches) == (LLAMA_UNTIED, {})
    assert ledger.tensors["model.lm_head.weight"].role == "head"

    write(tmp_path / "model.safetensors", {**shapes, **misnamed})
    assert count(tmp_path).mismatches == {"unexpected": ("model.lm_head.weight",)}


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("{", "is not JSON"),
        ("", "is empty"),
        ("[]", "holds the list"),
        ("{}", "is not a model config"),
        ('{"model_type": "gpt2", "n_embd": "8"}', "n_embd is the string '8'"),
        ('{"model_type": "gpt2", "n_embd": 7}', "divisible"),
        ('{"model_type": "gpt2", "n_layer": 1000000000000}', "describes more than 1,000,000 tensors"),
        ('{"model_type": 5}', "model_type is 5"),
    ],
)
def test_a_broken_config_beside_a_sound_checkpoint(tmp_path: Path, config: str, words: str):
    write(tmp_path / "model.safetensors", TINY_SHAPES)
    (tmp_path / "config.json").write_text(config)
    ledger = count(tmp_path)
    assert ledger.total == TINY_UNIQUE
    assert ledger.architecture is None
    assert noted(ledger, "the checkpoint's config was not used")
    assert noted(ledger, words)


@pytest.mark.parametrize("model_type", ["mt5", "x\nyz\x1b[2J", "\ud800"], ids=ascii)
def test_an_unknown_model_type_beside_a_checkpoint(tmp_path: Path, model_type: str):
    write(tmp_path / "model.safetensors", TINY_SHAPES)
    write_config(tmp_path, {"model_type": model_type})
    ledger = count(tmp_path)
    assert ledger.total == TINY_UNIQUE
    assert noted(ledger, "which is not known natively: roles are guessed from names")
    assert all(note.isprintable() for note in ledger.notes)


# -- overrides ------------------------------------------------------------------------------------


def test_overrides_are_set_over_the_config_beside(tmp_path: Path):
    write(tmp_path / "model.safetensors", llama_shapes())
    write_config(tmp_path, {**LLAMA, "tie_word_embeddings": True})
    assert count(tmp_path).total == LLAMA_BODY + 160
    assert count(tmp_path, tie_word_embeddings=False).total == LLAMA_UNTIED
    assert set(count(tmp_path, num_hidden_layers=2).mismatches) == {"unexpected"}
    with pytest.raises(BadInput, match="has no key 'n_hidden_layers' to set; nearest: num_hidden_layers"):
        count(tmp_path, n_hidden_layers=2)
    with pytest.raises(BadInput, match="num_hidden_layers is the string 'two'"):
        count(tmp_path, num_hidden_layers="two")


def test_overrides_that_nothing_reads_are_refused(tmp_path: Path):
    write(tmp_path / "model.safetensors", llama_shapes())
    with pytest.raises(BadInput, match=r"there is no .*config\.json to set num_hidden_layers in"):
        count(tmp_path, num_hidden_layers=2)
    write_config(tmp_path, {"model_type": "mt5"})
    with pytest.raises(BadInput, match="which is not known natively: num_hidden_layers cannot be set"):
        count(tmp_path, num_hidden_layers=2)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(BadInput, match="is not JSON"):
        count(tmp_path, num_hidden_layers=2)
