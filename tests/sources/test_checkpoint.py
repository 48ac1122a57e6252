"""Checkpoints as they are found: published layouts, what transformers saves, shards, bytes and
limits.
"""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from checkpoint_models import LLAMA, TINY, TINY_SHAPES, TINY_UNIQUE, llama_shapes, names, noted, parameters, small_model
from checkpoints import gpt2_published, write, write_config, write_sharded
from tallystick import BadInput, Ledger, count
from tallystick.sources.checkpoint import checkpoint
from tallystick.sources.configs.native import MOST_DESCRIBED

GPT2 = 124_439_808
MASKS = 12 * 1024 * 1024


def roles(ledger: Ledger) -> dict[str, int]:
    """Where the parameters are; a tied head, which has none of its own, is known to a config
    alone.
    """
    return {role: parameters for role, parameters in ledger.by("role").items() if parameters}


# -- GPT-2 as it is published ---------------------------------------------------------------------


def test_gpt2_as_published(tmp_path: Path):
    """No prefix, no head, a causal mask in each layer that looks like a bias."""
    write(tmp_path / "model.safetensors", gpt2_published(), metadata={"format": "pt"})
    write_config(tmp_path, {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"]})
    ledger = count(tmp_path)
    assert ledger.kind == "safetensors"
    assert ledger.architecture == "gpt2"
    assert ledger.totals == {
        "unique": GPT2,
        "by_name": GPT2 + 50_257 * 768,
        "stored": 137_022_720,
        "trainable": GPT2,
        "embedding": (50_257 + 1024) * 768,
        "non_embedding": GPT2 - (50_257 + 1024) * 768,
        "active": GPT2,
        "buffers": MASKS,
        "bytes": 4 * GPT2,
        "stored_bytes": 4 * 137_022_720,
    }
    assert [(tie.names, tie.relation, tie.parameters) for tie in ledger.ties] == [
        (("wte.weight", "lm_head.weight"), "tied", 50_257 * 768)
    ]
    assert ledger.mismatches == {}
    assert ledger.by("role") == count("gpt2").by("role")
    assert ledger.to_dict()["mismatches"] == {}
    assert noted(ledger, "12 stored tensors count as buffers")


def test_gpt2_as_published_without_its_config(tmp_path: Path):
    path = write(tmp_path / "model.safetensors", gpt2_published(), metadata={"format": "pt"})
    ledger = count(str(path))
    assert (ledger.total, ledger.totals["stored"], ledger.totals["buffers"]) == (GPT2, 137_022_720, MASKS)
    assert roles(ledger) == roles(count("gpt2"))
    assert ledger.architecture is None
    assert ledger.ties == ()
    assert noted(ledger, "12 stored tensors count as buffers, because of their names")
    assert noted(ledger, "such as h.0.attn.bias")
    assert noted(ledger, "no LM head is stored")
    assert "mismatches" not in ledger.to_dict()


def test_a_file_its_folder_and_its_config_say_one_thing(tmp_path: Path):
    file = write(tmp_path / "model.safetensors", TINY_SHAPES)
    config = write_config(tmp_path, TINY)
    assert count(tmp_path).total == count(str(file)).total == count(file).total == count(config).total == TINY_UNIQUE
    assert count(tmp_path).source == str(tmp_path)
    assert count(config).kind == "config"


# -- what transformers saves ----------------------------------------------------------------------

NATIVE = [
    "bamba", "bloom", "deepseek_v3", "falcon", "gemma", "gemma2", "gemma3_text", "gemma3n_text", "gpt2", "gpt_neox", "gpt_oss", "gptj",
    "granite", "llama", "llama4_text", "mistral", "mixtral", "olmo2", "opt", "phi", "phi3", "qwen2", "qwen3", "qwen3_next", "starcoder2",
]  # fmt: skip


@pytest.mark.parametrize("tied", [True, False, None], ids=["tied", "untied", "as its type is"])
@pytest.mark.parametrize("model_type", NATIVE)
def test_what_transformers_saves(tmp_path: Path, model_type: str, tied: bool | None):
    model = small_model(model_type, **({} if tied is None else {"tie_word_embeddings": tied}))
    model.save_pretrained(tmp_path)
    ledger = count(tmp_path)
    assert ledger.total == ledger.totals["trainable"] == parameters(model)
    assert ledger.mismatches == {}
    assert ledger.architecture == model_type
    config = count(tmp_path / "config.json")
    assert ledger.by("role") == config.by("role")
    assert ledger.totals["active"] == config.totals["active"]
    assert len(ledger.ties) == len(config.ties) == len(model.all_tied_weights_keys)


@pytest.mark.parametrize("model_type", NATIVE)
def test_what_transformers_saves_without_its_config(tmp_path: Path, model_type: str):
    """Roles by name alone are those of the config, and the stored tensors are all counted."""
    model = small_model(model_type)
    model.save_pretrained(tmp_path)
    described = count(tmp_path)
    (tmp_path / "config.json").unlink()
    ledger = count(tmp_path)
    assert ledger.total == parameters(model)
    assert roles(ledger) == roles(described)
    assert ledger.totals["buffers"] == described.totals["buffers"]
    assert ledger.totals["active"] == (None if "experts" in described.by("role") else ledger.total)


def test_what_transformers_saves_in_shards(tmp_path: Path):
    model = small_model("llama", num_hidden_layers=6)
    model.save_pretrained(tmp_path, max_shard_size=8_000)
    assert len(list(tmp_path.glob("*.safetensors"))) > 2
    assert count(tmp_path).total == parameters(model)
    assert count(tmp_path / "model.safetensors.index.json").total == parameters(model)
    assert count(tmp_path).mismatches == {}


@pytest.mark.parametrize("model_type", ["mixtral", "deepseek_v3"])
def test_experts_in_both_layouts(tmp_path: Path, model_type: str):
    """Published one by one, held fused by transformers 5: one count, and no mismatch in either."""
    model = small_model(model_type)
    ledgers = []
    for name, state in [("fused", model.state_dict()), ("published", None)]:
        folder = tmp_path / name
        model.save_pretrained(folder)
        if state is not None:
            tensors = {name: tuple(tensor.shape) for name, tensor in state.items()}
            write(folder / "model.safetensors", tensors)
        ledgers.append(count(folder))
    fused, published = ledgers
    assert any(".experts.0." in name for name in names(published))
    assert not any(".experts.0." in name for name in names(fused))
    for ledger in ledgers:
        assert ledger.mismatches == {}
        assert ledger.total == parameters(model)
        assert ledger.by("role") == fused.by("role")
        assert ledger.totals["active"] == fused.totals["active"] < ledger.total


# -- which file of a folder -----------------------------------------------------------------------


def test_the_file_that_loaders_would_take(tmp_path: Path):
    write(tmp_path / "model.fp16.safetensors", {"wte.weight": (1, 1)})
    assert count(tmp_path).total == 1
    write(tmp_path / "model.safetensors", {"wte.weight": (2, 1)})
    assert count(tmp_path).total == 2
    write_sharded(tmp_path, {"wte.weight": (3, 1)}, {"lm_head.weight": (1, 1)})
    assert count(tmp_path).total == 4


def test_a_folder_of_several_files_is_not_guessed(tmp_path: Path):
    for name in ("a", "b"):
        write(tmp_path / f"{name}.safetensors", {"wte.weight": (1, 1)})
    with pytest.raises(BadInput, match=r"holds 2 safetensors files and no model\.safetensors\.index\.json: name one"):
        count(tmp_path)


# -- bytes ----------------------------------------------------------------------------------------


def test_bytes_of_mixed_dtypes(tmp_path: Path):
    """Parameters in `bytes`, whatever is in the file in `stored_bytes`."""
    shapes = {"wte.weight": (5, 3), "h.0.attn.bias": (1, 1, 4, 4), "h.0.mlp.c_fc.weight": (3, 7), "ln_f.weight": (3,)}
    dtypes = {"wte.weight": "BF16", "h.0.attn.bias": "BOOL", "h.0.mlp.c_fc.weight": "F8_E4M3"}
    ledger = count(write(tmp_path / "a.safetensors", shapes, dtypes=dtypes))
    assert ledger.totals["unique"] == 15 + 21 + 3
    assert ledger.totals["bytes"] == 2 * 15 + 21 + 4 * 3
    assert ledger.totals["stored"] == 15 + 16 + 21 + 3
    assert ledger.totals["stored_bytes"] == 2 * 15 + 16 + 21 + 4 * 3
    assert ledger.by("dtype") == {"bfloat16": 15, "float8_e4m3fn": 21, "float32": 3}
    assert {row["dtype"]: row["bytes"] for row in ledger.rows("dtype")} == {
        "bfloat16": 30,
        "float8_e4m3fn": 21,
        "float32": 12,
    }


def test_stored_bytes_are_the_files(tmp_path: Path):
    """All bytes after the header, buffers and a head stored twice included."""
    path = write(tmp_path / "model.safetensors", {**llama_shapes(), "model.rotary_emb.inv_freq": (2,)}, dtype="BF16")
    write_config(tmp_path, {**LLAMA, "tie_word_embeddings": True})
    ledger = count(tmp_path)
    header = int.from_bytes(path.read_bytes()[:8], "little")
    assert ledger.totals["stored_bytes"] == path.stat().st_size - 8 - header
    assert ledger.totals["bytes"] == 2 * ledger.total
    assert ledger.totals["buffers"] == 2


def test_packed_integers_are_said(tmp_path: Path):
    shapes = {"layers.0.mlp.up_proj.qweight": (4, 4), "layers.0.mlp.up_proj.scales": (4,)}
    dtypes = {"layers.0.mlp.up_proj.qweight": "I32"}
    ledger = count(write(tmp_path / "a.safetensors", shapes, dtypes=dtypes))
    assert noted(ledger, "1 tensors hold integers, possibly packed quantised weights")


def test_an_empty_checkpoint(tmp_path: Path):
    ledger = count(write(tmp_path / "a.safetensors", {}))
    assert ledger.total == ledger.totals["stored"] == 0
    assert ledger.rows("role") == []


def test_a_large_checkpoint_is_read_by_its_header(tmp_path: Path):
    """A file of 600 GB, all of it a hole: only its header is ever there."""
    shapes = {f"model.layers.{layer}.mlp.up_proj.weight": (2**15, 2**15) for layer in range(140)}
    try:
        path = write(tmp_path / "model.safetensors", shapes)
    except OSError:
        pytest.skip("this file system holds no file of that size")
    assert count(path).total == 140 * 2**30


def test_the_description_has_a_limit():
    """It is far above the largest models, of some 100,000 tensors."""
    assert MOST_DESCRIBED > 500_000


@pytest.mark.parametrize("part", [None, "text"])
def test_a_description_beyond_it_is_refused_wherever_it_stands(tmp_path: Path, part: str | None):
    """Beside an index alone, and in a part: nothing is laid out name by name."""
    text = {"model_type": "llama", "num_hidden_layers": 10**9}
    write_config(tmp_path, {"model_type": "llava", "text_config": text} if part else text)
    if part:
        write(tmp_path / "model.safetensors", {"model.language_model.embed_tokens.weight": (8, 4)})
    else:
        (tmp_path / "model.safetensors.index.json").write_text('{"weight_map": {"lm_head.weight": "a.safetensors"}}')
    with pytest.raises(BadInput, match="describes more than 1,000,000 tensors"):
        count(tmp_path, part=part)


def test_a_module_whose_config_is_beyond_it_is_counted_alone():
    model = small_model("llama")
    model.config.num_hidden_layers = 10**9
    assert count(model).total == parameters(model)


@pytest.mark.parametrize("searching", [True, False])
def test_the_search_for_garbage_is_left_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, searching: bool):
    """Reading a header puts it off, whether the file is counted or refused."""
    within: list[bool] = []
    entries = checkpoint.stored_entries
    monkeypatch.setattr(checkpoint, "stored_entries", lambda *args: (within.append(gc.isenabled()), entries(*args))[1])
    write(tmp_path / "model.safetensors", TINY_SHAPES)
    (tmp_path / "broken.safetensors").write_bytes(b"no header")
    try:
        (gc.enable if searching else gc.disable)()
        count(tmp_path / "model.safetensors")
        assert within == [False]
        assert gc.isenabled() is searching
        with pytest.raises(BadInput):
            count(tmp_path / "broken.safetensors")
        assert gc.isenabled() is searching
    finally:
        gc.enable()
