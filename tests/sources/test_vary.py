"""Formulas found from code alone: against the blueprints of real classes, and at sizes that no fit
has seen.
"""

from __future__ import annotations

import itertools
import json
import math
import random
import re
import textwrap
from collections.abc import Callable
from typing import Any

import pytest
import sympy
import torch
import transformers
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn

import tallystick
from rotating import one_by_commit, some_by_commit
from tallystick.cli.main import main
from tallystick.core.algebra.expressions import evaluate
from tallystick.errors import BadInput
from tallystick.models import teaching
from tallystick.sources.factory.fit_expression import fit
from unfilled import unfilled

transformers.logging.set_verbosity_error()


def total(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


@unfilled()
def truth(factory: Callable[..., nn.Module], **point: int) -> int:
    """The parameters of the model that a factory builds."""
    with torch.device("meta"):
        return total(factory(**point))


# -- against the blueprints -----------------------------------------------------------------------

# Each config is small where it is not varied; heads divide all widths, so that nothing is refused.
FAMILIES: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "gpt2": (
        {"n_head": 4},
        {"n_embd": "16:64:4", "n_layer": "1:4", "vocab_size": "10:40", "n_positions": "8:30", "n_inner": "5:40"},
    ),
    "llama": (
        {"vocab_size": 40, "head_dim": None},
        {
            "hidden_size": "72:360:72",
            "num_hidden_layers": "1:4",
            "num_attention_heads": "12,24,36",
            "num_key_value_heads": "1:4",
            "intermediate_size": "5:40",
        },
    ),
    "mixtral": (
        {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": None},
        {
            "vocab_size": "10:40",
            "hidden_size": "16:64:4",
            "num_hidden_layers": "1:3",
            "num_local_experts": "2:7",
            "intermediate_size": "5:40",
        },
    ),
    "gemma": (
        {"num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 32},
        {"vocab_size": "10:40", "hidden_size": "16:64:4", "num_hidden_layers": "1:4", "head_dim": "2:16:2"},
    ),
}


@pytest.mark.parametrize("model_type", one_by_commit([*FAMILIES]))
def test_the_formula_of_a_class_of_transformers_is_that_of_its_blueprint(model_type: str):
    fixed, vary = FAMILIES[model_type]

    def factory(**sizes: int) -> nn.Module:
        config = transformers.AutoConfig.for_model(model_type, pad_token_id=None, **fixed, **sizes)
        return transformers.AutoModelForCausalLM.from_config(config)

    found = tallystick.formula(factory, vary=vary)
    native = tallystick.formula({"model_type": model_type, **fixed, **found.symbols})
    constants = {key: value for key, value in native.symbols.items() if key not in vary}
    ours, theirs = sympy.sympify(found.expression), sympy.sympify(native.expression).subs(constants)
    assert sympy.expand(ours - theirs) == 0
    assert found.value == native.value
    assert set(found.symbols) == set(vary) & set(native.symbols)


def test_gpt2_from_its_factory_reads_as_it_is_taught():
    def factory(**sizes: int) -> nn.Module:
        return transformers.GPT2LMHeadModel(transformers.GPT2Config(n_head=1, **sizes))

    vary = {"vocab_size": (9, 90), "n_positions": (9, 90), "n_embd": (8, 64), "n_layer": (1, 4)}
    assert tallystick.formula(factory, vary=vary).expression == tallystick.formula("gpt2").expression


def test_a_transformer_of_a_first_course_has_the_formula_of_its_blueprint():
    vary = {
        "vocab_size": (5, 30),
        "context_length": (2, 9),
        "d_model": (4, 16),
        "n_layers": (1, 4),
        "n_heads": [1, 2, 4],
    }
    found = tallystick.formula(teaching.TransformerLM, vary=vary, tie_word_embeddings=True, bias=True)
    native = tallystick.formula("transformer-lm", tie_word_embeddings=True, bias=True, d_ff=None)
    assert sympy.expand(sympy.sympify(found.expression) - sympy.sympify(native.expression)) == 0
    assert "n_heads changes no tensor" in found.notes
    assert any("n_heads" in note and "points were skipped" in note for note in found.notes)


def test_layers_of_other_shapes_at_both_ends():
    """Of the first layer there is one, of the last one, and `depth - 1` between, of which some runs
    have none.
    """
    vary = {"inputs": (1, 9), "width": (1, 9), "depth": (1, 5), "outputs": (1, 9)}
    found = tallystick.formula(teaching.MLP.of_depth, vary=vary)
    native = tallystick.formula("mlp")
    assert sympy.expand(sympy.sympify(found.expression) - sympy.sympify(native.expression)) == 0


# -- at sizes that no fit has seen ----------------------------------------------------------------


def rounded(dim: int = 96, n_layers: int = 2, multiple_of: int = 32) -> nn.Module:
    inner = multiple_of * ((int(8 * dim / 3) + multiple_of - 1) // multiple_of)
    block = {"up": (dim, inner), "down": (inner, dim)}
    return nn.Sequential(*(nn.ModuleDict({k: nn.Linear(*v) for k, v in block.items()}) for _ in range(n_layers)))


def grouped(d: int = 32, heads: int = 4, groups: int = 2) -> nn.Module:
    head = d // heads
    return nn.ModuleDict({"qkv": nn.Linear(d, (heads + 2 * groups) * head), "norm": nn.LayerNorm(head)})


def hybrid(d: int = 8, n: int = 6, every: int = 3) -> nn.Module:
    """An attention in every so many layers, state spaces in the others."""
    kinds = ({"attn": nn.Linear(d, d)} if i % every == every - 1 else {"ssm": nn.Linear(d, 2 * d)} for i in range(n))
    return nn.ModuleDict({"layers": nn.ModuleList(nn.ModuleDict(kind) for kind in kinds)})


def dense_first(d: int = 8, n: int = 4, dense: int = 1, experts: int = 4) -> nn.Module:
    def layer(number: int) -> nn.Module:
        count = 1 if number < dense else experts
        return nn.ModuleDict(
            {"mlp" if number < dense else "experts": nn.ModuleList(nn.Linear(d, d) for _ in range(count))}
        )

    return nn.ModuleDict({"layers": nn.ModuleList(layer(number) for number in range(n))})


def bounded(d: int = 64, n: int = 8) -> nn.Module:
    return nn.ModuleDict({"low": nn.Linear(d, max(d // 16, 4)), "high": nn.Linear(min(n, 5), 2)})


def parameters(d: int = 3, n: int = 2) -> nn.Module:
    """Numbered at the end of their names; one of them has no dimension."""
    return nn.ParameterDict(
        {
            "scale": nn.Parameter(torch.empty(())),
            "rows": nn.ParameterList(nn.Parameter(torch.empty(d)) for _ in range(n)),
        }
    )


def shared_layers(d: int = 4, n: int = 3) -> nn.Module:
    """One layer, called many times under as many names."""
    layer = nn.Linear(d, d)
    return nn.ModuleList(layer for _ in range(n))


@pytest.mark.parametrize(
    ("factory", "vary", "part"),
    [
        (rounded, {"dim": (16, 300), "n_layers": (1, 4)}, "⌈dim/12⌉"),
        (rounded, {"dim": (16, 300), "multiple_of": [8, 16, 24, 32, 40]}, "⌈⌊8·dim/3⌋/multiple_of⌉"),
        (grouped, {"d": (8, 99), "heads": (1, 8), "groups": (1, 8)}, "⌊d/heads⌋"),
        (hybrid, {"d": (2, 9), "n": (1, 12), "every": (1, 4)}, "⌊n/every⌋"),
        (dense_first, {"d": (2, 9), "n": (1, 6), "dense": (0, 3), "experts": (2, 6)}, "max(0, n - dense)"),
        (bounded, {"d": (16, 200), "n": (1, 9)}, "max(4, ⌊d/16⌋)"),
        (parameters, {"d": (2, 9), "n": (1, 5)}, "n·d"),
        (shared_layers, {"d": (2, 9), "n": (1, 5)}, "d²"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_the_formula_holds_wherever_the_factory_builds(
    factory: Callable[..., nn.Module], vary: dict[str, Any], part: str
):
    formula = tallystick.formula(factory, vary=vary)
    assert part in formula.text
    spread = [v if isinstance(v, list) else range(v[0], v[1] + 1, max(1, (v[1] - v[0]) // 6)) for v in vary.values()]
    plain_python = compile(formula.expression, "formula", "eval")
    for values in some_by_commit(list(itertools.product(*spread)), 120):
        point = dict(zip(vary, values, strict=True))
        assert eval(plain_python, {"max": max, "min": min}, point) == truth(factory, **point), point
    assert int(sympy.sympify(formula.expression).subs(formula.symbols)) == formula.value
    for step in formula.steps:
        assert int(sympy.sympify(step.expression).subs(formula.symbols)) == step.value


SIZES: dict[str, tuple[str, Callable[[dict[str, int], int, int], int]]] = {
    "affine": ("a*x + b", lambda p, a, b: a * p["x"] + b),
    "product": ("a*x*y", lambda p, a, b: a * p["x"] * p["y"]),
    "square": ("x**2 + b*y", lambda p, a, b: p["x"] ** 2 + b * p["y"]),
    "up": ("b*ceil(a*x/b)", lambda p, a, b: b * math.ceil(a * p["x"] / b)),
    "down": ("a*(x//y)", lambda p, a, b: a * (p["x"] // p["y"])),
    "most": ("max(x, b)", lambda p, a, b: max(p["x"], 5 + 5 * b)),
    "least": ("min(x, a*y)", lambda p, a, b: min(p["x"], a * p["y"])),
}


@pytest.mark.parametrize("form", SIZES)
@settings(max_examples=8, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
@given(a=st.integers(1, 6), b=st.integers(2, 9), seed=st.integers(0, 99))
def test_a_form_is_found_from_some_points_and_true_of_all(form: str, a: int, b: int, seed: int):
    everywhere = [{"x": x, "y": y} for x in range(8, 80) for y in range(1, 9)]
    points = random.Random(seed).sample(everywhere, 80)
    size = SIZES[form][1]
    found = fit(points, [size(point, a, b) for point in points])
    assert found is not None
    assert all(evaluate(found, point) == size(point, a, b) for point in everywhere)


def test_too_few_points_for_a_form_are_no_proof_of_it():
    """Any three numbers lie on a parabola, and any two on a line."""
    points = [{"x": x} for x in (1, 2, 3)]
    assert fit(points, [2, 3, 5]) is None
    assert fit(points, [2, 4, 6]) == ("*", 2, "x")


# -- what is said ---------------------------------------------------------------------------------


def test_the_headline_is_the_model_of_the_defaults():
    formula = tallystick.formula(rounded, vary={"dim": "16:300", "n_layers": "1:4"})
    assert formula.symbols == {"dim": 96, "n_layers": 2}
    assert formula.value == total(rounded())
    assert formula.latex.count(r"\lceil") == formula.latex.count(r"\rceil") == 2
    (note,) = formula.notes
    assert re.fullmatch(r"fitted to 25 models built on the meta device, and confirmed on \d+ more", note)


def test_a_tie_is_counted_once_and_named():
    def factory(vocab_size: int, d: int) -> nn.Module:
        return teaching.BareBonesLM(vocab_size, d, bias=False, tie_word_embeddings=True)

    formula = tallystick.formula(factory, vary={"vocab_size": [10, 20, 30, 40], "d": (2, 9)})
    assert formula.expression == "vocab_size*d"
    assert [step.what for step in formula.steps] == ["embedding.weight", "head.weight (is embedding.weight)"]


def test_where_no_other_value_builds_the_formula_is_of_these_alone():
    def listed(d_head: int) -> nn.Module:
        return teaching.SingleHeadAttention(8, {2: 2, 4: 4, 8: 8}[d_head])

    formula = tallystick.formula(listed, vary={"d_head": [2, 4, 8]})
    assert formula.expression == "24*d_head"
    assert formula.notes == (
        "exact for all 3 models that can be built there",
        "only at these values of d_head: 2, 4, 8; the factory failed at all other values tried",
    )


def pyramid(d: int = 2, n: int = 2) -> nn.Module:
    return nn.ModuleList(nn.Linear(d * 2**i, d * 2 ** (i + 1)) for i in range(n))


def residue(d: int = 2) -> nn.Module:
    return nn.Linear(d, d * d % 17 + 1)


def late(d: int = 2, n: int = 4) -> nn.Module:
    return nn.ModuleDict({"first": nn.Linear(d, d), **({"extra": nn.Linear(d, d)} if n > 3 else {})})


def overlapping(d: int = 4) -> nn.Module:
    flat = torch.zeros(3 * d)
    return nn.ParameterDict({"a": nn.Parameter(flat[: 2 * d]), "b": nn.Parameter(flat[d:])})


CALLS = itertools.count(1)


def fickle(d: int) -> nn.Module:
    """Never builds the same twice."""
    return nn.Linear(d, next(CALLS))


def picky(d: int) -> nn.Module:
    if d not in (4, 8):
        raise ValueError("only 4 and 8 will do")
    return nn.Linear(d, d)


def never(d: int) -> nn.Module:
    raise RuntimeError("no model today")


def plain(d: int = 4) -> nn.Module:
    return nn.Linear(d, d)


@pytest.mark.parametrize(
    ("factory", "vary", "message"),
    [
        (pyramid, {"d": (2, 9), "n": (1, 4)}, r"pyramid has a tensor without a formula: \*\.weight with"),
        (residue, {"d": (2, 90)}, r"without a formula: size 1 of weight is 1 with d=\d+; 2 with d="),
        (late, {"d": (2, 9), "n": (1, 6)}, r"extra\.weight with d=\d, n=\d is absent"),
        (overlapping, {"d": (2, 9)}, "overlapping: b shares part of a, which has no formula"),
        (fickle, {"d": (2, 9)}, "fickle built two different models with d="),
        (picky, {"d": (2, 90)}, r"picky builds at 2 of 89 points, with d at 4 and 8 only.*only 4 and 8 will do"),
        (
            never,
            {"d": (2, 9)},
            "never fails at all of the first 5 points: never raised RuntimeError: no model today.*it must build under torch",
        ),
        (plain, {"e": (2, 9)}, "plain takes no argument 'e'"),
        (plain, {"d": (2, 3)}, "has 2 values; a formula needs at least 3"),
        (plain, {"d": "9:2"}, "has 0 values; a formula needs at least 3"),
        (plain, {"d": "many"}, "d cannot be varied over 'many': expected a range 64:256"),
        (plain, {"d": 5}, "d cannot be varied over 5"),
        (plain, {"d": [1.5, 2, 3]}, "d cannot be varied over"),
        (plain, {"d": "1:9:0"}, "d cannot be varied over '1:9:0'"),
        (plain, {"d": (-3, 3)}, "integers of 0 or more"),
        (plain, {"d": "1:99999999999999999999"}, "below 2\\^63"),
        (plain, {}, "name an argument to vary"),
        ("gpt2", {"n_embd": (2, 9)}, "'gpt2' has no arguments to vary"),
        (7, {"n_embd": (2, 9)}, "cannot vary 7"),
        (nn.Linear(2, 2), {"d": (2, 9)}, "is already a module, so"),
    ],
    ids=lambda value: str(getattr(value, "__qualname__", "")),
)
def test_what_has_no_formula_is_said_in_one_line(factory: Any, vary: dict[str, Any], message: str):
    with pytest.raises(BadInput, match=message) as error:
        tallystick.formula(factory, vary=vary)
    assert "\n" not in str(error.value)


def test_a_varied_argument_cannot_be_set_too():
    with pytest.raises(BadInput, match="d is both varied and set"):
        tallystick.formula(plain, vary={"d": (2, 9)}, d=3)


def test_a_factory_that_logs_and_warns_at_every_size_is_not_heard(caplog: pytest.LogCaptureFixture):
    import logging
    import warnings

    def noisy(d: int) -> nn.Module:
        logging.getLogger("noisy").warning("an odd size")
        warnings.warn("an odd size", stacklevel=1)
        return nn.Linear(d, d)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tallystick.formula(noisy, vary={"d": (2, 9)})
    assert caplog.messages == []
    logging.getLogger("noisy").warning("heard again")
    assert caplog.messages == ["heard again"]


# -- the command ----------------------------------------------------------------------------------


@pytest.fixture
def module(tmp_path, monkeypatch):
    text = """
        from torch import nn

        def build(width=8, depth=2, bias=True):
            print("building")
            return nn.Sequential(*(nn.Linear(width, width, bias=bias) for _ in range(depth)))
    """
    (tmp_path / "varied_model.py").write_text(textwrap.dedent(text))
    monkeypatch.syspath_prepend(tmp_path)
    return "varied_model:build"


def test_the_command_takes_ranges_steps_lists_and_settings(module, capsys):
    code = main(
        ["formula", module, "--vary", "width=2:20:3", "depth=1,2,3,5", "--set", "bias=false", "--format", "json"]
    )
    answer = json.loads(capsys.readouterr().out)
    assert code == 0
    assert answer["expression"] == "depth*width**2"
    assert answer["symbols"] == {"width": 8, "depth": 2}
    assert answer["value"] == 2 * 8 * 8


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["widht=2:20"], "takes no argument 'widht'; nearest: width"),
        (["width"], "argument --vary: 'width' is not KEY=VALUE"),
        (["width=2-20"], "width cannot be varied over '2-20'"),
    ],
)
def test_the_command_says_what_was_wrong_in_one_line(module, capsys, words: list[str], message: str):
    assert main(["formula", module, "--vary", *words]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
