"""The native types: a small config of each, and its ledger compared with the model that is really built."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import configs
import drawing
import measurements
import tallystick
from holding import Truth
from measurements import measured
from nesting import nested
from tallystick import architectures
from tallystick.core.ledger import Ledger
from tallystick.sources.configs.config import ledger_from_config

NATIVE = sorted(configs.CONFIGS)
SLOW = drawing.some(NATIVE, 60)  # types of tests that build many models of each

# What the default config of a type lacks: transformers builds no model of it.
LACKING: dict[str, dict[str, Any]] = {
    **{model_type: kin.lacking for model_type, kin in configs.KIN.items() if kin.lacking},
    "hunyuan_v1_dense": {"head_dim": 16},
    "hunyuan_v1_moe": {"head_dim": 16},
    "nemotron": {"num_key_value_heads": 8},
}

COMMON = {
    "vocab_size": 40, "hidden_size": 16, "intermediate_size": 12, "num_attention_heads": 4, "num_key_value_heads": 2,
    "num_hidden_layers": 2,
}  # fmt: skip
MIXED = {**COMMON, "moe_intermediate_size": 6, "shared_expert_intermediate_size": 5}

# Small enough to build once for each key that is flipped.
SMALL: dict[str, dict[str, Any]] = {
    **{model_type: kin.small for model_type, kin in configs.KIN.items()},
    "gpt2": {"vocab_size": 40, "n_embd": 16, "n_head": 2, "n_layer": 2},
    "gptj": {"vocab_size": 40, "n_embd": 16, "n_head": 2, "n_layer": 2},
    "gpt_bigcode": {"vocab_size": 40, "n_embd": 16, "n_head": 2, "n_layer": 2},
    "codegen": {"vocab_size": 40, "n_embd": 16, "n_head": 2, "n_layer": 2},
    "gpt_neo": {
        "vocab_size": 40, "hidden_size": 16, "num_heads": 2, "num_layers": 2, "attention_types": [[["global"], 2]],
        "max_position_embeddings": 20,
    },
    "mpt": {"vocab_size": 40, "d_model": 16, "n_heads": 2, "n_layers": 2},
    "bloom": {"vocab_size": 40, "hidden_size": 16, "n_head": 2, "n_layer": 2},
    "opt": {"vocab_size": 40, "hidden_size": 16, "ffn_dim": 12, "num_attention_heads": 2, "num_hidden_layers": 2},
    "gemma3n_text": {
        "vocab_size": 40, "hidden_size": 16, "intermediate_size": 12, "num_attention_heads": 4, "num_key_value_heads": 2,
        "num_hidden_layers": 4, "num_kv_shared_layers": 1, "vocab_size_per_layer_input": 30,
        "hidden_size_per_layer_input": 6, "laurel_rank": 3,
    },
    "qwen3_next": {
        "vocab_size": 40, "hidden_size": 16, "intermediate_size": 12, "moe_intermediate_size": 6,
        "shared_expert_intermediate_size": 5, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 4,
        "num_hidden_layers": 4, "num_experts": 12, "linear_key_head_dim": 4, "linear_value_head_dim": 6,
        "linear_num_key_heads": 2, "linear_num_value_heads": 4,
    },
    "bamba": {
        "vocab_size": 40, "hidden_size": 16, "intermediate_size": 12, "num_attention_heads": 4, "num_key_value_heads": 2,
        "num_hidden_layers": 3, "mamba_n_heads": 4, "mamba_d_state": 6, "attn_layer_indices": [1],
    },
    "deepseek_v3": {
        "vocab_size": 40, "hidden_size": 16, "intermediate_size": 12, "moe_intermediate_size": 6,
        "num_attention_heads": 2, "num_key_value_heads": 2, "num_hidden_layers": 4, "n_routed_experts": 8,
    },
    "qwen2_moe": {**MIXED, "num_experts": 12},
    "olmoe": {**MIXED, "num_experts": 12},
    "phimoe": {**MIXED, "num_local_experts": 4},
    "glm4_moe": {**MIXED, "n_routed_experts": 12},
    "deepseek_v2": {**MIXED, "n_routed_experts": 12, "num_experts_per_tok": 4},
    "ernie4_5_moe": {**MIXED, "moe_num_experts": 12},
    "hunyuan_v1_moe": {**MIXED, "num_experts": 4, "head_dim": 16},
    "minimax": {**MIXED, "block_size": 3},
    "minimax_m2": {**MIXED, "num_local_experts": 12, "head_dim": 4},
    "gpt_oss": {
        "vocab_size": 40, "hidden_size": 16, "intermediate_size": 12, "num_attention_heads": 4,
        "num_key_value_heads": 2, "num_hidden_layers": 2, "num_local_experts": 8,
    },
}  # fmt: skip


def small(model_type: str, **more: Any) -> dict[str, Any]:
    """A complete config of a few thousand parameters."""
    values = {**LACKING.get(model_type, {}), **SMALL.get(model_type, COMMON)}
    family = architectures.find(model_type)
    known = {*family.keys, *family.running, "attention_types", "pad_token_id"}  # the first lists the layers
    return {
        "model_type": model_type,
        "pad_token_id": None,
        **{k: v for k, v in values.items() if k in known or k.endswith(".pad_token_id")},
        **more,
    }


def other_values(value: object) -> list[object]:
    """What a bool, an integer or a null could be instead."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, 2 * value, 0]
    return [True, False, 1, 2, 4]


def count(values: dict[str, Any], **more: Any) -> Ledger:
    return ledger_from_config(values, {}, source="test", **more)


def default_config(model_type: str) -> Any:
    """transformers' config of a type with nothing set but what it lacks."""
    import transformers

    return transformers.AutoConfig.for_model(model_type, **nested(LACKING.get(model_type, {})))


def assert_equal(values: dict[str, Any], true: Truth | str | None = None) -> Ledger:
    """Our ledger of a config says what the built model holds, to the last tensor.

    `true` is what the model holds, or the digest of that; where neither is given, the committed digest.
    """
    ledger = count(values)
    entries, totals = ledger.entries, ledger.totals
    assert len({entry.name for entry in entries}) == len(entries), values
    ours = Truth(
        shapes={entry.name: tuple(map(int, entry.shape)) for entry in entries if not entry.buffer},
        ties={frozenset(tie.names) for tie in ledger.ties},
        buffers={entry.name: tuple(map(int, entry.shape)) for entry in entries if entry.buffer},
        total=int(ledger.total),
        trainable=int(totals["trainable"]),
    )
    true = true or measured("reference:model", values)
    if isinstance(true, Truth):
        assert_same(ours, true, values)
    elif ours.digest != true:
        assert measurements.MODE != "none", f"not what transformers builds, by tests/measured/reference.json: {values}"
        from reference import truth

        assert_same(ours, truth(values), values)
        raise AssertionError(
            f"tests/measured/reference.json says {true} of what transformers builds as we count it: {values}"
        )

    assert totals["unique"] == ours.total, values
    assert totals["by_name"] == sum(map(math.prod, ours.shapes.values())), values
    assert totals["buffers"] == sum(map(math.prod, ours.buffers.values())), values
    assert totals["embedding"] + totals["non_embedding"] == ours.total, values
    assert sum(ledger.by("role").values()) == sum(ledger.by("tensor").values()) == ours.total, values
    assert 0 < totals["active"] <= ours.total, values
    return ledger


def assert_same(ours: Truth, true: Truth, values: dict[str, Any]) -> None:
    """Fact by fact, so that the first that differs is shown."""
    assert ours.shapes == true.shapes, values
    assert ours.ties == true.ties, values
    assert ours.buffers == true.buffers, values
    assert (ours.total, ours.trainable) == (true.total, true.trainable), values


def assert_nothing_is_lacking(model: Any, folder: Path) -> None:
    """A saved folder and the living model agree with what the config says, whose closed form has the same value."""
    model.save_pretrained(folder)
    total = sum(parameter.numel() for parameter in model.parameters())
    for ledger in (tallystick.count(folder), tallystick.count(model)):
        assert not ledger.mismatches
        assert ledger.total == ledger.described.total == total
        assert tallystick.formula(ledger).value == total
    assert tallystick.ties(folder).verdict == "consistent"
