"""The language part of a checkpoint that also sees: what is stored of it, compared with the model
that was saved.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import tallystick
from checkpoints import header_of, write, write_config, write_raw, write_sharded
from host import publish, serving
from small import small_model
from tallystick.errors import BadInput

SEEING = "AutoModelForImageTextToText"
# Named by their text's own type, where it stands with another prefix than transformers writes, by
# transformers' loader alone (of a type without a class of its own; of other names in its files),
# and with an encoder in its text.
TYPES = ("gemma3", "llava", "mllama", "idefics3", "qwen2_vl", "qwen3_vl_moe", "kimi_k25", "florence2")


def language(model: torch.nn.Module) -> list[torch.nn.Parameter]:
    """The parameters of a model's language part, each once."""
    inner = getattr(model, "model", model)
    part = getattr(inner, "language_model", None) or getattr(inner, "text_model", None) or model.language_model
    head = getattr(model, "lm_head", None)
    return list({id(p): p for module in (part, head) if module is not None for p in module.parameters()}.values())


@pytest.mark.parametrize("model_type", TYPES)
def test_of_a_folder_the_stored_language_is_counted(model_type: str, tmp_path: Path):
    model = small_model(model_type, auto=SEEING)
    model.save_pretrained(tmp_path)
    own = language(model)
    ledger = tallystick.count(tmp_path, part="text")
    assert ledger.total == sum(parameter.numel() for parameter in own)
    assert ledger.totals["stored_bytes"] == sum(parameter.nbytes for parameter in own)
    assert not ledger.mismatches


@pytest.mark.parametrize("model_type", ["qwen2_vl", "qwen3_vl_moe"])
def test_the_language_of_a_config_has_its_head_though_its_type_has_no_class_with_one(model_type: str, tmp_path: Path):
    model = small_model(model_type, auto=SEEING)
    own = sum(parameter.numel() for parameter in language(model))
    model.config.save_pretrained(tmp_path)
    assert tallystick.count(tmp_path, part="text").total == own
    wider = tallystick.count(tmp_path, part="text", vocab_size=model.config.text_config.vocab_size + 1).total
    assert wider - own == 2 * model.config.text_config.hidden_size  # of the embedding, and of the head


TEXT = {
    "model_type": "llama", "vocab_size": 10, "hidden_size": 8, "intermediate_size": 4, "num_hidden_layers": 1,
    "num_attention_heads": 2,
}  # fmt: skip
CONFIG = {"model_type": "unheard_of", "text_config": TEXT, "tie_word_embeddings": False}
LAYER = "language_model.model.layers.0"
SHAPES = {
    "vision.patches.weight": (7, 7),
    "language_model.model.embed_tokens.weight": (10, 8),
    **{f"{LAYER}.self_attn.{name}_proj.weight": (8, 8) for name in "qkvo"},
    f"{LAYER}.mlp.gate_proj.weight": (4, 8),
    f"{LAYER}.mlp.up_proj.weight": (4, 8),
    f"{LAYER}.mlp.down_proj.weight": (8, 4),
    f"{LAYER}.input_layernorm.weight": (8,),
    f"{LAYER}.post_attention_layernorm.weight": (8,),
    "language_model.model.norm.weight": (8,),
    "language_model.lm_head.weight": (10, 8),
}
OWN = sum(math.prod(shape) for name, shape in SHAPES.items() if name.startswith("language_model"))


def test_of_a_type_that_nobody_knows_too(tmp_path: Path):
    write(tmp_path / "model.safetensors", SHAPES)
    write_config(tmp_path, CONFIG)
    ledger = tallystick.count(tmp_path, part="text")
    assert ledger.total == OWN
    assert ledger.notes[:2] == (
        "language part only, text_config: a model of type llama",
        "left out: 49 parameters of other parts, in vision",
    )
    assert {entry.name for entry in ledger.entries} == SHAPES.keys() - {"vision.patches.weight"}
    assert tallystick.ties(ledger).verdict == "consistent"


def test_of_shards_too_and_of_shards_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from huggingface_hub import constants

    names = list(SHAPES)
    write_sharded(tmp_path, {name: SHAPES[name] for name in names[:5]}, {name: SHAPES[name] for name in names[5:]})
    write_config(tmp_path, CONFIG)
    assert tallystick.count(tmp_path, part="text").total == OWN
    with serving() as hub, serving() as storage:
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        monkeypatch.setattr(constants, "ENDPOINT", hub.address)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        publish(hub, storage, "org/name", {path.name: path.read_bytes() for path in tmp_path.iterdir()})
        ledger = tallystick.count("hf://org/name", part="text")
    assert ledger.total == OWN
    assert ledger.notes[-1].startswith("fetched ")


def test_packed_weights_keep_what_is_beside_them(tmp_path: Path):
    """Each projection in int8, with its scales in a tensor of their own."""
    dtypes: dict[str, str] = {}
    shapes: dict[str, tuple[int, ...]] = {}
    for name, shape in SHAPES.items():
        shapes[name] = shape
        if "_proj" in name or name.startswith("vision"):
            dtypes[name], shapes[name.replace(".weight", ".SCB")] = "I8", shape[:1]
    header = header_of(shapes, dtypes=dtypes)
    write_raw(
        tmp_path / "model.safetensors", header, sum(math.prod(s) * (1 if n in dtypes else 4) for n, s in shapes.items())
    )
    write_config(tmp_path, CONFIG)
    ledger = tallystick.count(tmp_path, part="text")
    assert ledger.total == OWN
    scales = 4 * 8 + 4 + 4 + 8
    assert ledger.totals["stored"] == OWN + scales
    packed = 4 * 8 * 8 + 3 * 4 * 8
    assert ledger.totals["stored_bytes"] == packed + 4 * (OWN - packed + scales)


def test_what_is_not_all_there_is_counted_from_the_config(tmp_path: Path):
    names = list(SHAPES)
    write_sharded(tmp_path, {name: SHAPES[name] for name in names[:5]}, {name: SHAPES[name] for name in names[5:]})
    write_config(tmp_path, CONFIG)
    (tmp_path / "model-00002-of-00002.safetensors").unlink()
    ledger = tallystick.count(tmp_path, part="text")
    assert ledger.total == OWN
    assert ledger.notes[0] == "counted from the config: some weight files are missing"


@pytest.mark.parametrize(
    ("shapes", "why"),
    [
        (
            {"vision.patches.weight": (7, 7)},
            "cannot tell the language part from the names alone; config.json: .*unheard",
        ),
        ({name: shape for name, shape in SHAPES.items() if "norm" not in name}, "cannot tell"),
    ],
)
def test_a_language_part_that_cannot_be_told_apart_is_refused(shapes: dict[str, Any], why: str, tmp_path: Path):
    write(tmp_path / "model.safetensors", shapes)
    write_config(tmp_path, CONFIG)
    with pytest.raises(BadInput, match=f"^{tmp_path}: {why}") as raised:
        tallystick.count(tmp_path, part="text")
    assert "\n" not in str(raised.value)


def test_a_stored_tensor_that_is_lost_is_said_where_transformers_knows_the_names(tmp_path: Path):
    model = small_model("gemma3", auto=SEEING)
    model.save_pretrained(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    lost = next(name for name in tensors if name.endswith("layers.1.mlp.up_proj.weight") and "language" in name)
    size = tensors.pop(lost).numel()
    save_file(tensors, tmp_path / "model.safetensors", metadata={"format": "pt"})
    ledger = tallystick.count(tmp_path, part="text")
    assert ledger.total == sum(parameter.numel() for parameter in language(model)) - size
    assert len(ledger.mismatches["missing"]) == 1


def test_a_type_without_a_language_part_of_its_own_is_refused():
    values = {"model_type": "vit", "num_hidden_layers": 1, "text_config": {"model_type": "mt5"}}
    with pytest.raises(BadInput, match=r"^the dictionary: transformers' ViTModel has no separate language part"):
        tallystick.count(values, part="text")
