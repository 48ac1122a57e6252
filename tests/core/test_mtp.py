"""Multi-token prediction: what transformers builds for it beside a model, and what DeepSeek-V3's
files hold of it.
"""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save_file
from transformers.modeling_layers import MtpModel

import configs
import tallystick
from drawing import drawn
from native import small
from reference import build
from tallystick import architectures
from tallystick.core import mtp

# A config can ask for no shared expert: transformers then builds matrices without a row.
pytestmark = pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")

DECLARED = [name for name in configs.CONFIGS if mtp.LAYERS in architectures.find(name).running]


def note(ledger: tallystick.Ledger) -> str:
    (found,) = [line for line in ledger.notes if "multi-token prediction" in line]
    return found


@pytest.mark.parametrize("model_type", DECLARED)
@given(data=st.data())
@drawn(10)
def test_a_config_says_what_its_layers_add(model_type: str, data: st.DataObject):
    layers = data.draw(st.integers(1, 3))
    values = {**data.draw(configs.CONFIGS[model_type]), mtp.LAYERS: layers}
    values.pop("num_mtp_layers", None)  # another key for their number
    values["first_k_dense_replace"] = data.draw(st.integers(0, values["num_hidden_layers"] - 1))
    main = build(values)
    with torch.device("meta"):
        further = MtpModel(main, layers)
    own = sum(p.numel() for name, p in further.named_parameters() if name.startswith("layers."))
    ledger = tallystick.count(values)
    assert ledger.total == sum(p.numel() for p in main.parameters())
    assert note(ledger) == (
        "not part of the causal language model, so not counted: multi-token prediction layers"
        f" ({layers}, with {own:,} additional parameters)"
    )


def test_nothing_is_said_where_there_are_none():
    for none in (0, "two"):
        assert not tallystick.count(small("deepseek_v3", num_nextn_predict_layers=none, dtype="float32")).notes


def test_layers_that_nobody_described_are_said_without_a_count():
    ledger = tallystick.count(small("mistral", num_mtp_layers=2))
    assert note(ledger).endswith(": multi-token prediction layers (2)")


@pytest.fixture
def stored(tmp_path):
    """A tiny DeepSeek-V3 of two layers as it is published: a third layer predicts the token after
    the next.
    """

    def write(further: dict[str, tuple[int, ...]]) -> tuple[Any, int]:
        values = small("deepseek_v3", num_hidden_layers=2, first_k_dense_replace=1, num_nextn_predict_layers=1)
        (tmp_path / "config.json").write_text(json.dumps(values))
        shapes = {e.name: tuple(e.shape) for e in architectures_of(values)}
        save_file(
            {name: torch.zeros(shape) for name, shape in {**shapes, **further}.items()}, tmp_path / "model.safetensors"
        )
        return tallystick.count(tmp_path), sum(map(math.prod, further.values()))

    return write


def architectures_of(values: dict[str, Any]) -> Any:
    from tallystick.sources.configs.config import ledger_from_config

    return ledger_from_config(values, {}, source="test", published=True).entries


LIKE_DEEPSEEK = {
    "enorm.weight": (16,),
    "eh_proj.weight": (16, 32),
    "embed_tokens.weight": (40, 16),
    "mlp.gate.weight": (8, 16),
}


@pytest.mark.parametrize("prefix", ["model.layers.2.", "mtp.layers.0."])
def test_a_checkpoint_says_what_of_it_they_are(stored, prefix: str):
    ledger, apart = stored({prefix + name: shape for name, shape in LIKE_DEEPSEEK.items()})
    model = ledger.described.total
    assert ledger.total == model + apart
    assert note(ledger) == (
        f"{apart:,} parameters in 4 tensors are for multi-token prediction, not part of the causal"
        f" language model (such as {prefix}eh_proj.weight): {model:,} without them"
    )
    assert not ledger.mismatches


def test_a_further_layer_of_another_kind_is_no_multi_token_prediction(stored):
    ledger, _ = stored({"model.layers.2.mlp.gate.weight": (8, 16)})
    assert ledger.mismatches == {"unexpected": ("model.layers.2.mlp.gate.weight",)}
    assert not any("multi-token" in line for line in ledger.notes)
