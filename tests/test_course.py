"""What a learner writes is judged by its numbers: right ones in any writing, wrong ones with the
sizes at which they are.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from copy import deepcopy
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
import sympy
import torch

from tallystick.architectures import TEACHING
from tallystick.course import TRIES, judge
from tallystick.errors import BadInput
from tallystick.models import teaching

# By hand, from the models' own definition in `tallystick.models.teaching`: weights are inputs ×
# outputs, and a bias its outputs.
ANSWERS = {
    "embedding": "vocab_size * d_model",
    "bare_bones_lm": "vocab_size * d_model + d_model * vocab_size + vocab_size",
    "mlp": "inputs * width + width + (depth - 1) * (width * width + width) + width * outputs + outputs",
    "feed_forward_lm": "vocab_size * d_model + context_length * d_model * width + width + width * vocab_size + vocab_size",
    "position_wise_lm": "vocab_size * d_model + 2 * d_model * width + width + d_model",
    "single_head_attention": "3 * d_model * d_head",
    "multi_head_attention": "4 * d_model * d_model",
    "transformer_layer": "4 * d_model * d_model + 2 * d_model * d_ff + d_ff + d_model + 4 * d_model",
    "transformer_lm": "(2 * vocab_size + context_length) * d_model + n_layers * (12 * d_model * d_model + 9 * d_model)",
    "rotary_transformer_lm": "2 * vocab_size * d_model + n_layers * (12 * d_model * d_model + 9 * d_model)",
}

MOST_SPOILT = 8  # changed answers of each model


def names_of(expression: str) -> list[str]:
    return sorted({node.id for node in ast.walk(ast.parse(expression)) if isinstance(node, ast.Name)})


def function_of(expression: str):
    return eval(f"lambda {', '.join(names_of(expression))}: {expression}")


def spoilt(expression: str) -> Iterator[str]:
    """The expression with one thing in it changed: a number, a size, a sign, or a term left out."""
    tree = ast.parse(expression, mode="eval")
    names = names_of(expression)
    for place, node in enumerate(ast.walk(tree)):
        changes: list[dict[str, object]] = []
        if isinstance(node, ast.Constant):
            changes = [{"value": node.value + 1}, {"value": node.value - 1}]
        elif isinstance(node, ast.Name):
            changes = [{"id": name} for name in names if name != node.id]
        elif isinstance(node, ast.BinOp):
            changes = [{"op": op()} for op in (ast.Add, ast.Sub, ast.Mult) if not isinstance(node.op, op)]
            changes += [{"right": ast.Constant(int(isinstance(node.op, ast.Mult)))}]
        for change in changes:
            copy = deepcopy(tree)
            for field, value in change.items():
                setattr(list(ast.walk(copy))[place], field, value)
            yield ast.unparse(copy)


def test_each_model_of_the_course_has_an_answer():
    assert set(ANSWERS) == set(TEACHING)


@pytest.mark.parametrize("model", ANSWERS)
def test_a_right_answer_is_right_however_it_is_multiplied_out(model):
    for expression in (ANSWERS[model], str(sympy.expand(ANSWERS[model])), str(sympy.factor(ANSWERS[model]))):
        assert str(judge(model, function_of(expression))) == f"right at each of {TRIES} sizes"


@pytest.mark.parametrize("model", ANSWERS)
def test_a_spoilt_answer_is_wrong_and_the_sizes_are_those_at_which_it_is(model):
    right = function_of(ANSWERS[model])
    wrong = 0
    changed = sorted(set(spoilt(ANSWERS[model])))
    for expression in changed[:: max(1, len(changed) // MOST_SPOILT)]:
        same = sympy.expand(f"({expression}) - ({ANSWERS[model]})") == 0
        judgement = judge(model, function_of(expression))
        assert judgement.right == same, expression
        if not same:
            wrong += 1
            for trial in judgement.trials:
                assert trial.off_by == trial.given - right(
                    **{name: trial.sizes[name] for name in names_of(ANSWERS[model])}
                )
            assert judgement.sentence.startswith("wrong at ")
    assert wrong > 3


@pytest.mark.parametrize(
    "number",
    [int, float, Fraction, Decimal, np.int64, np.float64, sympy.Integer, torch.tensor],
    ids=lambda kind: kind.__name__,
)
def test_a_whole_number_of_any_type_is_a_count(number):
    assert judge("single-head-attention", lambda d_model, d_head: number(3 * d_model * d_head)).right
    assert not judge("single-head-attention", lambda d_model, d_head: number(4 * d_model * d_head)).right


def consuming(widths):
    total = 0
    while len(widths) > 1:
        total += (widths.pop(0) + 1) * widths[0]
    return total


def keyword_only(*, vocab_size, d_model, tie_word_embeddings, bias=True, unit=1):
    return (vocab_size * d_model * (1 if tie_word_embeddings else 2) + (vocab_size if bias else 0)) * unit


def by_name(**sizes):
    return keyword_only(**sizes)


def built(vocab_size, context_length, d_model, n_layers, n_heads):
    with torch.device("meta"):
        model = teaching.TransformerLM(vocab_size, context_length, d_model, min(n_layers, 2), n_heads)
    layer = sum(parameter.numel() for parameter in model.layers[0].parameters())
    return sum(parameter.numel() for parameter in model.parameters()) + (n_layers - len(model.layers)) * layer


@pytest.mark.parametrize(
    ("model", "answer"),
    [
        ("mlp", consuming),
        ("mlp", lambda widths, bias: sum(a * b + bias * b for a, b in pairwise(widths))),
        ("bare-bones-lm", keyword_only),
        ("bare-bones-lm", by_name),
        ("transformer-lm", built),
        ("transformer-layer", lambda d_model: 12 * d_model**2 + 9 * d_model),
        ("transformer-layer", lambda d_model, n_heads: 12 * n_heads**2 * (d_model // n_heads) ** 2 + 9 * d_model),
        ("multi-head-attention", lambda d_model, n_heads: n_heads * 3 * d_model * (d_model / n_heads) + d_model**2),
        ("feed-forward-lm", lambda vocab_size, context_length, d_model, width: vocab_size * (d_model + width + 1) + width * (context_length * d_model + 1)),
    ],
)  # fmt: skip
def test_right_answers_in_other_words(model, answer):
    assert judge(model, answer).sentence == f"right at each of {TRIES} sizes"


@pytest.mark.parametrize("answer", [by_name, lambda inputs, widths: 0])
def test_an_mlp_is_told_in_one_way(answer):
    assert judge("mlp", answer).sentence == "widths and inputs set the same thing: keep one"


def test_flags_are_as_one_says():
    def tied(vocab_size, d_model):
        return vocab_size * d_model

    assert judge("bare-bones-lm", tied, tie_word_embeddings=True, bias=False).right
    assert not judge("bare-bones-lm", tied, tie_word_embeddings=True).right
    assert not judge("bare-bones-lm", tied).right


def test_what_holds_for_some_sizes_alone_is_wrong_at_the_others():
    judgement = judge("bare-bones-lm", lambda vocab_size, d_model, tie_word_embeddings: vocab_size * (2 * d_model + 1))
    right = sum(not trial.sizes["tie_word_embeddings"] for trial in judgement.trials)
    assert 0 < right < TRIES
    assert [trial.off_by == 0 for trial in judgement.trials] == [
        not t.sizes["tie_word_embeddings"] for t in judgement.trials
    ]
    assert judgement.sentence.startswith(f"wrong at {TRIES - right} of {TRIES} sizes: with vocab_size = ")
    assert "too many; right with " in judgement.sentence


def test_the_sentence_tells_the_smallest_model_and_by_how_much():
    judgement = judge("single-head-attention", lambda d_model, d_head: 4 * d_model * d_head)
    smallest = judgement.trials[0].sizes
    product = smallest["d_model"] * smallest["d_head"]
    assert judgement.sentence == (
        f"wrong at each of {TRIES} sizes: with d_model = {smallest['d_model']}, d_head = {smallest['d_head']} "
        f"it gives {4 * product}, which is {product} too many"
    )
    assert product == min(trial.sizes["d_model"] * trial.sizes["d_head"] for trial in judgement.trials)


def test_an_answer_is_judged_the_same_each_time():
    assert judge("transformer-lm", lambda d_model: d_model) == judge("transformer_lm", lambda d_model: d_model)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda vocab_size, dmodel: 1, "bare_bones_lm has no dmodel; nearest: d_model; name the arguments as vocab_size, d_model, bias"),
        (lambda *sizes: 1, "bare_bones_lm has no sizes; nearest: "),
        (lambda vocab_size, /: 1, "bare_bones_lm has no vocab_size"),
        (38_597_376, "38597376 is not a function of sizes: write one"),
        (lambda vocab_size: vocab_size / 0, "it raises ZeroDivisionError: division by zero"),
        (lambda vocab_size: undefined, "it raises NameError: name 'undefined' is not defined"),  # noqa: F821
        (lambda vocab_size: vocab_size + 0.5, ".5, which is not a whole number"),
        (lambda vocab_size: float("nan"), "it gives nan, which is not a whole number"),
        (lambda vocab_size: float("inf"), "it gives inf, which is not a whole number"),
        (lambda vocab_size: None, "it gives None, which is not a whole number"),
        (lambda vocab_size: "12", "it gives the string '12', which is not a whole number"),
        (lambda vocab_size: ..., "your turn: write the count in place of ..."),
        (lambda vocab_size: True, "it gives True, which is not a whole number"),
        (lambda vocab_size: 1 + 0j, "it gives (1+0j), which is not a whole number"),
    ],
)  # fmt: skip
def test_what_is_no_count_is_said_in_one_line(answer, words):
    judgement = judge("bare-bones-lm", answer)
    assert not judgement.right
    assert judgement.trials == ()
    assert words in judgement.sentence
    assert "\n" not in judgement.sentence


def test_an_error_of_several_lines_is_told_in_one():
    def answer(vocab_size):
        raise ValueError("one\ntwo")

    assert "\n" not in judge("bare-bones-lm", answer).sentence


@pytest.mark.parametrize(
    ("model", "flags", "words"),
    [
        ("bare-bones", {}, "unknown model the string 'bare-bones'; nearest: bare_bones_lm"),
        ("gpt2", {}, "the course has"),
        ("bare-bones-lm", {"tied": True}, "bare_bones_lm has no flag tied; it has bias, tie_word_embeddings"),
        ("bare-bones-lm", {"d_model": 7}, "bare_bones_lm has no flag d_model"),
    ],
)
def test_models_and_flags_that_there_are_not(model, flags, words):
    with pytest.raises(BadInput, match=r"unknown model|has no flag") as error:
        judge(model, lambda: 0, **flags)
    assert words in str(error.value)
