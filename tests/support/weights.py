"""Checkpoints on disk: transformers' small models saved, read back strictly, and the files of
others' projects.
"""

from __future__ import annotations

import json
import logging
import struct
import warnings
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors import safe_open
from transformers.utils.logging import warning_once

from decoders import KINDS, theirs

IDS = {"bos_token_id": 0, "eos_token_id": 0}  # transformers warns of ids beyond a vocabulary
SMALL: dict[str, dict[str, Any]] = {kind: {**values, **IDS} for kind, values in KINDS.items()}


def small(kind: str, **settings: Any) -> Any:
    """A small model of transformers."""
    return theirs(kind, **{**SMALL[kind], **settings})


class _Complaint(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        raise AssertionError(record.getMessage())


def read_strictly(folder: Path) -> Any:
    """What transformers loads from a folder, in its own dtype; a warning or a leftover tensor of
    any kind is an error.
    """
    logger = transformers.logging.get_logger("transformers")
    complaint = _Complaint(logging.WARNING)
    before = logger.level
    warning_once.cache_clear()  # what was said once is to be said again
    logger.addHandler(complaint)
    logger.setLevel(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model, told = transformers.AutoModelForCausalLM.from_pretrained(
                folder, output_loading_info=True, attn_implementation="eager"
            )
    finally:
        logger.removeHandler(complaint)
        logger.setLevel(before)
    assert not any(told.values()), told
    return model.eval()


def stored(folder: Path) -> dict[str, torch.Tensor]:
    """Every tensor in the safetensors files of a folder, by the format's own library."""
    found: dict[str, torch.Tensor] = {}
    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(path, "pt") as file:
            for name in file.keys():  # noqa: SIM118 - the library's own object, which cannot be iterated
                assert name not in found
                found[name] = file.get_tensor(name)
    return found


def same_bits(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> None:
    """Fail unless both hold the same names, dtypes, shapes and bits."""
    assert one.keys() == other.keys(), one.keys() ^ other.keys()
    for name, tensor in one.items():
        twin = other[name]
        assert (tensor.dtype, tensor.shape) == (twin.dtype, twin.shape), name
        assert torch.equal(tensor.contiguous().view(torch.uint8), twin.contiguous().view(torch.uint8)), name


def edit_config(folder: Path, **values: Any) -> None:
    """Change a folder's config.json."""
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def write_llama2c(path: Path, model: Any, *, negative: bool) -> None:
    """A transformers Llama as llama2.c's first format: float32, kind by kind, neighbouring channels
    turning together.
    """
    config = model.config
    d, heads, kv_heads = config.hidden_size, config.num_attention_heads, config.num_key_value_heads
    head = d // heads
    tensors = {name: tensor.float() for name, tensor in model.state_dict().items()}
    layers = range(config.num_hidden_layers)

    def paired(weight: torch.Tensor) -> torch.Tensor:
        rows = []
        for start in range(0, len(weight), head):
            for pair in range(head // 2):
                rows += [weight[start + pair], weight[start + pair + head // 2]]
        return torch.stack(rows)

    each = [
        ("input_layernorm.weight", None),
        ("self_attn.q_proj.weight", paired),
        ("self_attn.k_proj.weight", paired),
        ("self_attn.v_proj.weight", None),
        ("self_attn.o_proj.weight", None),
        ("post_attention_layernorm.weight", None),
        ("mlp.gate_proj.weight", None),
        ("mlp.down_proj.weight", None),
        ("mlp.up_proj.weight", None),
    ]
    pieces = [tensors["model.embed_tokens.weight"]]
    for name, change in each:
        found = [tensors[f"model.layers.{layer}.{name}"] for layer in layers]
        pieces += [change(one) for one in found] if change else found
    pieces += [tensors["model.norm.weight"], torch.full((config.max_position_embeddings, head), 7.0)]
    if negative:
        pieces.append(tensors["lm_head.weight"])
    numbers = (
        d, config.intermediate_size, len(layers), heads, kv_heads,
        -config.vocab_size if negative else config.vocab_size, config.max_position_embeddings,
    )  # fmt: skip
    path.write_bytes(struct.pack("<7i", *numbers) + b"".join(one.contiguous().numpy().tobytes() for one in pieces))


def write_nanogpt(path: Path, model: Any, *, bias: bool, compiled: bool) -> None:
    """A transformers GPT-2 as nanoGPT keeps it: linear layers, the head beside the embedding, an
    optimizer's state.
    """
    config = model.config
    linear = ("c_attn.weight", "c_proj.weight", "c_fc.weight")
    prefix = "_orig_mod." if compiled else ""
    state = {
        prefix + name: tensor.T.contiguous() if name.endswith(linear) else tensor
        for name, tensor in model.state_dict().items()
        if bias or not name.endswith(".bias")
    }
    state[f"{prefix}transformer.h.0.attn.bias"] = torch.ones(1, 1, 8, 8).tril()  # its mask, without flash attention
    arguments = {
        "n_layer": config.n_layer, "n_head": config.n_head, "n_embd": config.n_embd, "block_size": config.n_positions,
        "bias": bias, "vocab_size": config.vocab_size, "dropout": 0.25,
    }  # fmt: skip
    optimizer = torch.optim.AdamW([torch.nn.Parameter(torch.zeros(3))])
    whole = {"model": state, "model_args": arguments, "optimizer": optimizer.state_dict(), "iter_num": 5}
    torch.save({**whole, "best_val_loss": torch.tensor(3.0), "config": {"eval_only": False}}, path)
