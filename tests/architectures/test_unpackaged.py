"""The types that no package builds: by the counts that their authors publish, and against a
skeleton in torch.
"""

from __future__ import annotations

import pytest
import transformers
from hypothesis import given
from hypothesis import strategies as st

import drawing
from drawing import Config
from native import assert_equal, count
from outside_figures import figures_of
from reference import truth
from skeletons import SKELETONS
from unpackaged import DRAWN, EXAONE_7_8B, INTERNLM2_1_8B, UNPACKAGED

PUBLISHED = [(name, *published) for name, of in UNPACKAGED.items() for published in of.published]


@pytest.mark.parametrize(("model_type", "values", "total"), PUBLISHED)
def test_what_is_published_of_its_size(model_type: str, values: Config, total: int):
    ledger = count({"model_type": model_type, **values})
    assert ledger.architecture == model_type
    assert ledger.total == total


@pytest.mark.parametrize(("model_type", "values", "total"), [one for one in PUBLISHED if UNPACKAGED[one[0]].recognised])
def test_a_type_is_recognised_by_its_keys(model_type: str, values: Config, total: int):
    assert count(values).architecture == model_type
    assert count(values).total == total


@pytest.mark.parametrize("model_type", sorted(DRAWN))
@given(data=st.data())
@drawing.drawn(25)
def test_drawn_configs(model_type: str, data: st.DataObject):
    values = data.draw(DRAWN[model_type])
    assert_equal(values, truth(values))


def test_each_is_published_or_built_or_taken_from_a_paper():
    assert {name for name, of in UNPACKAGED.items() if not of.published or name not in DRAWN} == {"palm", "gopher"}
    assert set(SKELETONS) == set(DRAWN)


@pytest.mark.parametrize(
    ("sizes", "billions"),
    [
        ({"hidden_size": 2560, "intermediate_size": 7168, "num_layers": 30, "tie_word_embeddings": True}, 2.14),
        ({}, 6.98),
        ({"hidden_size": 5120, "intermediate_size": 27_392, "num_layers": 64, "num_attention_heads": 40}, 30.95),
    ],
)
def test_exaone_without_embeddings(sizes: Config, billions: float):
    """ "Number of Parameters (without embeddings)" of the model cards of EXAONE 3.5."""
    ledger = count({"model_type": "exaone", **EXAONE_7_8B, **sizes})
    assert round(ledger.totals["non_embedding"] / 1e9, 2) == billions


def test_internlm2_under_the_type_of_internlm():
    """Its first configs on the hub say `internlm`, the type of another model, and the class of this
    one.
    """
    values = {**INTERNLM2_1_8B, "architectures": ["InternLM2ForCausalLM"]}
    ledger = count({"model_type": "internlm", **values})
    assert ledger.total == count({"model_type": "internlm2", **values}).total
    assert any("counted as internlm2" in note for note in ledger.notes)


def test_palm_by_hand():
    """Section 2.1, for a width of 4096, 16 heads and 32 layers."""
    d, heads, layers = 4096, 16, 32
    swiglu = 3 * d * (4 * d)
    attention = d * heads * 256 + 2 * d * 256 + heads * 256 * d
    by_hand = 256_000 * d + layers * (swiglu + attention)
    values = {"model_type": "palm", "d_model": d, "n_heads": heads, "n_layers": layers}
    assert count(values).total == by_hand
    scaled = count({**values, "norm_scale": True})
    assert scaled.total == by_hand + (layers + 1) * d
    assert not any("bias" in entry.name for entry in scaled.entries)


def test_the_50_models_of_chinchillas_paper():
    """Hoffmann et al. 2022, table A9. Some have heads that are narrower together than the model."""
    made = figures_of("Chinchilla paper", "count")
    assert len(made) == 50
    assert [one.model for one in made if not one.agrees] == []


def test_without_relative_positions_chinchilla_would_have_too_few():
    ledger = count({"model_type": "gopher", "d_model": 8192, "n_heads": 64, "n_layers": 80})
    positions = sum(entry.size for entry in ledger.entries if ".r_proj." in entry.name)
    assert positions == 80 * 8192 * 8192
    assert round((ledger.total - positions) / 1e9, 1) == 64.7


def test_transformers_has_none_of_these():
    """When it comes to, they belong among the native types, to be compared with it."""
    known = transformers.models.auto.configuration_auto.CONFIG_MAPPING
    assert not set(UNPACKAGED) & set(known)
