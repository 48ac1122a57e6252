"""Every native architecture against the model that is really built: name by name, shape by shape,
tie by tie.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import configs
import drawing
from measurements import measured
from native import LACKING, NATIVE, SLOW, assert_equal, count, default_config, small
from tallystick import architectures
from tallystick.errors import BadInput
from unpackaged import UNPACKAGED

drawn = drawing.drawn(25)

# DeepSeek's config can ask for no shared expert: transformers then builds matrices without a row.
pytestmark = pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")


def test_every_native_type_is_tested():
    teaching = set(architectures.TEACHING)  # these have a test file of their own
    encoder_decoders = {"t5"}  # as have these, which have no causal language model
    assert set(architectures.known()) == set(NATIVE) | set(UNPACKAGED) | teaching | encoder_decoders
    for name in architectures.known():
        assert architectures.find(name).name == name
        of = architectures.ALIASES[name].like if name in architectures.ALIASES else name
        file = "teaching" if name in teaching else of
        assert architectures.find(name).build.__module__ == f"tallystick.architectures.{file}"


@pytest.mark.parametrize("model_type", NATIVE)
def test_default_config(model_type: str):
    """A config.json that says nothing but its type, and what its default lacks."""
    values = {"model_type": model_type, **LACKING.get(model_type, {})}
    name, held = measured("reference:of_class", values)
    assert architectures.find(model_type).class_name == name
    assert_equal(values, held)


@pytest.mark.parametrize("model_type", LACKING)
def test_a_default_that_makes_no_model_is_refused(model_type: str):
    assert measured("reference:model", {"model_type": model_type}) is None
    with pytest.raises(BadInput, match=f"^test: {next(iter(LACKING[model_type]))} is missing"):
        count({"model_type": model_type})


@pytest.mark.parametrize("model_type", SLOW)
def test_default_config_as_transformers_writes_it(model_type: str):
    """All keys with their values, those that `__post_init__` computes included."""
    assert_equal(default_config(model_type).to_dict())


@pytest.mark.parametrize("model_type", NATIVE)
@given(data=st.data())
@drawn
def test_drawn_configs(model_type: str, data: st.DataObject):
    assert_equal(data.draw(configs.CONFIGS[model_type]))


@pytest.mark.parametrize("shared", [11, 14, 15])
def test_more_borrowed_layers_than_there_are_as_transformers_builds_them(shared: int):
    """Its default, 15, of a model cut to ten layers: those that lend keep their projections, and no
    other does.
    """
    ledger = assert_equal(small("gemma3n_text", num_hidden_layers=10, num_kv_shared_layers=shared))
    assert sum(entry.name.endswith("k_proj.weight") for entry in ledger.entries) == 2


def test_a_factor_that_is_no_short_fraction_rounds_down_as_in_transformers():
    from reference import truth

    values = small("xlstm", qk_dim_factor=0.3, v_dim_factor=0.75)
    assert_equal(values, truth(values))
