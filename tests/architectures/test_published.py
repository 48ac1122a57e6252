"""Experts as checkpoints are published: one by one, or under other names than transformers
builds.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors import safe_open

import configs
from native import count, small
from reference import build
from rotating import drawn_by_commit
from tallystick.errors import BadInput

EXPERTS = [model_type for model_type, family in configs.FAMILIES.items() if family.experts]


@pytest.mark.parametrize("model_type", EXPERTS)
@given(data=st.data())
@drawn_by_commit(8)
def test_both_layouts_of_experts_count_the_same(model_type: str, data: st.DataObject):
    values = data.draw(configs.CONFIGS[model_type])
    fused, single = count(values), count(values, published=True)
    assert single.totals == fused.totals
    assert single.by("role") == fused.by("role")
    assert [tie.parameters for tie in single.ties] == [tie.parameters for tie in fused.ties]  # a head may be renamed


def test_published_names_of_mixtral():
    values = small("mixtral", num_local_experts=2)
    shapes = {entry.name: tuple(entry.shape) for entry in count(values, published=True).entries}
    assert {name.removeprefix("model.layers.1."): shape for name, shape in shapes.items() if ".1.block_" in name} == {
        "block_sparse_moe.gate.weight": (2, 16),
        "block_sparse_moe.experts.0.w1.weight": (12, 16),
        "block_sparse_moe.experts.0.w3.weight": (12, 16),
        "block_sparse_moe.experts.0.w2.weight": (16, 12),
        "block_sparse_moe.experts.1.w1.weight": (12, 16),
        "block_sparse_moe.experts.1.w3.weight": (12, 16),
        "block_sparse_moe.experts.1.w2.weight": (16, 12),
    }


def test_published_names_of_deepseek_v3():
    values = small("deepseek_v3", n_routed_experts=1, num_experts_per_tok=1)
    shapes = {entry.name: tuple(entry.shape) for entry in count(values, published=True).entries}
    assert {name.removeprefix("model.layers.3."): shape for name, shape in shapes.items() if ".3.mlp" in name} == {
        "mlp.experts.0.gate_proj.weight": (6, 16),
        "mlp.experts.0.up_proj.weight": (6, 16),
        "mlp.experts.0.down_proj.weight": (16, 6),
        "mlp.gate.weight": (1, 16),
        "mlp.gate.e_score_correction_bias": (1,),
        "mlp.shared_experts.gate_proj.weight": (6, 16),
        "mlp.shared_experts.up_proj.weight": (6, 16),
        "mlp.shared_experts.down_proj.weight": (16, 6),
    }


@pytest.mark.parametrize(
    ("model_type", "more", "published"),
    [
        (
            "phimoe",
            {"num_local_experts": 1, "num_experts_per_tok": 1},
            {
                "gate.weight": (1, 16), "experts.0.w1.weight": (12, 16), "experts.0.w3.weight": (12, 16),
                "experts.0.w2.weight": (16, 12),
            },
        ),
        (
            "granitemoe",
            {"num_local_experts": 2},
            {"router.layer.weight": (2, 16), "input_linear.weight": (2, 24, 16), "output_linear.weight": (2, 16, 12)},
        ),
    ],
)  # fmt: skip
def test_published_names_of_block_sparse_moe(model_type: str, more: dict[str, Any], published: dict[str, Any]):
    shapes = {entry.name: tuple(entry.shape) for entry in count(small(model_type, **more), published=True).entries}
    prefix = "model.layers.1.block_sparse_moe."
    assert {name.removeprefix(prefix): shape for name, shape in shapes.items() if name.startswith(prefix)} == published


@pytest.mark.parametrize(
    "values",
    [
        *({**small(name), "num_hidden_layers": 2} for name in EXPERTS if name != "granitemoe"),
        *(small(name) for name in ("emu3", "fuyu", "gemma3", "got_ocr2", "mllama")),  # towers apart from a whole model
    ],
    ids=lambda values: values["model_type"],
)
def test_published_names_are_those_that_transformers_writes(values: dict[str, Any], tmp_path: Path):
    """It saves a model as it was published, whatever it calls the tensors itself."""
    real = build(values).to_empty(device="cpu")
    real.tie_weights()
    real.save_pretrained(tmp_path)
    with safe_open(tmp_path / "model.safetensors", "pt") as file:
        stored = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118, no dictionary
    entries = count(values, published=True).entries
    assert stored == {entry.name: tuple(entry.shape) for entry in entries if entry.storage == entry.name}


@pytest.mark.parametrize(
    ("model_type", "used", "of"),
    [
        ("mixtral", "num_experts_per_tok", "num_local_experts"),
        ("gpt_oss", "num_experts_per_tok", "num_local_experts"),
        ("deepseek_v3", "num_experts_per_tok", "n_routed_experts"),
        ("ernie4_5_moe", "moe_k", "moe_num_experts"),
        ("hunyuan_v1_moe", "moe_topk", "num_experts"),
    ],
)
def test_a_token_uses_no_more_experts_than_there_are(model_type: str, used: str, of: str):
    values = small(model_type, **{used: 5, of: 4})
    with pytest.raises(BadInput, match=f"test: {used} = 5 is more than {of} = 4"):
        count(values)
    assert count({**values, used: 4}).totals["active"] == count(values | {used: 4}).total
