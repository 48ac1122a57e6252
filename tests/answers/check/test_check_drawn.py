"""Right derivations of drawn configs are accepted whole, in every style; one changed number is
found at its line.
"""

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import derivations
import tallystick

PUBLISHED = {
    "gpt2": (derivations.gpt2, {"vocab_size": 50257, "n_positions": 1024, "n_embd": 768, "n_layer": 12}, 124_439_808),
    "gpt2-xl": (derivations.gpt2, {"vocab_size": 50257, "n_positions": 1024, "n_embd": 1600, "n_layer": 48}, 1_557_611_200),
    "llama-2-7b": (
        derivations.llama,
        {
            "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
            "num_attention_heads": 32, "num_key_value_heads": 32,
        },
        6_738_415_616,
    ),
}  # fmt: skip


@st.composite
def models(draw):
    """A writer and the config that it writes about."""
    heads, layers = draw(st.integers(1, 6)), draw(st.integers(2, 40))
    width, vocabulary = heads * draw(st.sampled_from([4, 8, 64])), draw(st.integers(50, 60000))
    if draw(st.booleans()):
        config = {
            "vocab_size": vocabulary,
            "n_positions": draw(st.integers(16, 4096)),
            "n_embd": width,
            "n_layer": layers,
        }
        return derivations.gpt2, {"model_type": "gpt2", "n_head": heads, **config}
    return derivations.llama, {
        "model_type": "llama",
        "vocab_size": vocabulary,
        "hidden_size": width,
        "intermediate_size": draw(st.integers(8, 2000)),
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": draw(st.sampled_from([part for part in range(1, heads + 1) if heads % part == 0])),
    }


STYLES = st.sampled_from(sorted(derivations.STYLES))
TIMES = st.sampled_from(derivations.TIMES)
THOUSANDS = st.sampled_from(sorted(derivations.THOUSANDS))
LANGUAGES = st.sampled_from(sorted(derivations.LANGUAGES))
DRAWN = settings(
    max_examples=60, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)


@DRAWN
@given(model=models(), style=STYLES, times=TIMES, thousands=THOUSANDS, language=LANGUAGES)
def test_a_right_derivation_is_accepted_whole(model, style, times, thousands, language):
    write, config = model
    lines = write(config)
    pieces = derivations.translated(derivations.written(lines, style, times), language)
    text = derivations.text_of(pieces, thousands)
    answer = tallystick.check(text, against=config)
    assert answer.correct, (text, answer)
    assert len(answer.equations) >= len(lines) - 2
    assert answer.total_claimed == answer.total_true == lines[-1].value
    assert answer.omissions == ()


@DRAWN
@given(model=models(), style=STYLES, times=TIMES, thousands=THOUSANDS, language=LANGUAGES, seed=st.integers(0, 10**6))
def test_one_changed_number_is_found_at_its_line(model, style, times, thousands, language, seed):
    write, config = model
    right = derivations.translated(derivations.written(write(config), style, times), language)
    pieces, line = derivations.spoiled(right, random.Random(seed))
    text = derivations.text_of(pieces, thousands)
    answer = tallystick.check(text, against=config)
    wrong = [equation for equation in answer.equations if not equation.correct]
    assert any(equation.line <= line <= equation.last_line for equation in wrong), (text, line, answer)
    assert len(wrong) == 1, text
    total = answer.total_claimed + answer.arithmetic + answer.rounding + answer.unexplained
    assert total + sum(omission.parameters for omission in answer.omissions) == answer.total_true


BOOK = {
    "1558M": (
        derivations.book_gpt,
        {"vocab_size": 50257, "context_length": 1024, "emb_dim": 1600, "n_heads": 25, "n_layers": 48, "qkv_bias": True},
        1_638_022_400,
    ),
    "Llama 2 7B": (
        derivations.book_llama,
        {
            "vocab_size": 32000,
            "context_length": 4096,
            "emb_dim": 4096,
            "n_heads": 32,
            "n_layers": 32,
            "hidden_dim": 11008,
        },
        6_738_415_616,
    ),
}


@pytest.mark.parametrize("style", sorted(derivations.STYLES))
@pytest.mark.parametrize("name", [*PUBLISHED, *BOOK])
def test_published_models_in_every_style(name, style):
    write, config, truth = {**PUBLISHED, **BOOK}[name]
    text = derivations.text_of(derivations.written(write(config), style, "×"), "commas")
    answer = tallystick.check(text, against=name if name in PUBLISHED else config)
    assert answer.correct, (text, answer)
    assert answer.total_claimed == answer.total_true == truth
