"""A formula found from some values of the arguments, at values between them and far from them."""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import tallystick
from rotating import some_by_commit
from tallystick.errors import BadInput
from tallystick.sources.factory.argument_values import choices_of
from tallystick.sources.factory.probes import near_steps
from unfilled import unfilled


def total(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def of_layers(number: int, **sizes: tuple[int, int]) -> nn.ModuleList:
    return nn.ModuleList(
        nn.ModuleDict({name: nn.Linear(*size, bias=False) for name, size in sizes.items()}) for _ in range(number)
    )


# Feed-forward widths as people round them.


def up_to_256(dim: int = 512, n_layer: int = 2) -> nn.Module:
    inner = int(2 * (4 * dim) / 3)
    inner = inner if inner % 256 == 0 else inner + 256 - inner % 256
    return of_layers(n_layer, w1=(dim, inner), w2=(inner, dim))


def up_to_a_multiple(dim: int = 512, multiple_of: int = 64, multiplier: float | None = None) -> nn.Module:
    inner = int(2 * (4 * dim) / 3)
    inner = inner if multiplier is None else int(multiplier * inner)
    return of_layers(2, up=(dim, multiple_of * ((inner + multiple_of - 1) // multiple_of)))


def a_third_wider(dim: int = 512, n_layer: int = 2) -> nn.Module:
    inner = int(1.3 * int(8 * dim / 3))
    return of_layers(n_layer, up=(dim, 256 * ((inner + 255) // 256)))


def four_times(dim: int = 256, n: int = 2) -> nn.Module:
    """Every multiple of 32 hides that it is rounded."""
    return of_layers(n, up=(dim, -(-4 * dim // 128) * 128))


def by_sixteens(d_model: int = 256, n_layer: int = 2, d_state: int = 16) -> nn.Module:
    inner, rank = 2 * d_model, math.ceil(d_model / 16)
    return of_layers(n_layer, project=(inner, rank + 2 * d_state), step=(rank, inner))


def every_second(n_layer: int = 4, n_embd: int = 64, n_head: int = 4) -> nn.Module:
    if n_embd % n_head:
        raise ValueError("the heads do not divide the width")
    values = {str(i): nn.Embedding(50, n_embd) for i in range(n_layer) if i % 2 == (n_layer - 1) % 2}
    return nn.ModuleDict({"h": of_layers(n_layer, up=(n_embd, 4 * n_embd)), "value_embeds": nn.ModuleDict(values)})


def padded(vocab: int = 1000, d: int = 64) -> nn.Module:
    return nn.Embedding(-(-vocab // 64) * 64, d)


def grouped(dim: int = 512, n_heads: int = 8, n_kv: int = 2) -> nn.Module:
    if dim % n_heads or n_heads % n_kv:
        raise ValueError("the heads do not divide")
    return of_layers(2, q=(dim, dim), k=(dim, n_kv * (dim // n_heads)))


def capped(d: int = 64, n: int = 2) -> nn.Module:
    return of_layers(n, up=(d, min(d, 500)))


WIDTHS = [64, 128, 192, 256, 384, 512, 640, 768, 1024, 1280, 1536, 2048, 2304, 3072, 4096]
LAYERS = [1, 2, 3, 4, 6]
CASES: list[tuple[Callable[..., nn.Module], dict[str, list[int]]]] = [
    (up_to_256, {"dim": WIDTHS, "n_layer": LAYERS}),
    (up_to_a_multiple, {"dim": WIDTHS, "multiple_of": [1, 2, 3, 7, 32, 64, 256]}),
    (a_third_wider, {"dim": WIDTHS, "n_layer": LAYERS}),
    (four_times, {"dim": WIDTHS, "n": LAYERS}),
    (by_sixteens, {"d_model": WIDTHS, "n_layer": LAYERS, "d_state": [8, 16, 32]}),
    (every_second, {"n_layer": [2, 4, 6, 8, 10, 12], "n_embd": WIDTHS[:8], "n_head": [2, 4, 8]}),
    (padded, {"vocab": [64, 128, 512, 640, 50_304], "d": WIDTHS[:6]}),
    (grouped, {"dim": WIDTHS, "n_heads": [2, 4, 8, 16], "n_kv": [1, 2, 4]}),
    (capped, {"d": [16, 32, 64, 128], "n": [1, 2, 3]}),
]


@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")
@pytest.mark.parametrize("seed", some_by_commit(range(3), 1))
@pytest.mark.parametrize(("factory", "space"), CASES, ids=lambda value: getattr(value, "__name__", ""))
def test_a_formula_is_true_between_and_far_from_the_values_asked_for(
    factory: Callable[..., nn.Module], space: dict[str, list[int]], seed: int
):
    dice = random.Random(seed)
    vary = {name: sorted(dice.sample(values, dice.randint(3, min(5, len(values))))) for name, values in space.items()}
    try:
        formula = tallystick.formula(factory, vary=vary)
    except BadInput as refused:
        assert "without a formula: " in str(refused)  # noqa: PT017  # a refusal is right too, and names a tensor
        return
    if any(note.startswith("only with") for note in formula.notes):
        return
    python = compile(formula.expression, "formula", "eval")
    tried = 0
    for _ in range(60):
        point = {}
        for name, values in vary.items():
            point[name] = dice.choice([dice.choice(values), dice.randint(1, values[-1] * dice.choice([1, 1, 4]))])
            for step in (note.split()[4] for note in formula.notes if f" of {name}: the factory failed" in note):
                point[name] -= point[name] % int(step)
        try:
            with torch.device("meta"), unfilled():
                truth = total(factory(**point))
        except (ValueError, RuntimeError, ZeroDivisionError):
            continue
        tried += 1
        assert eval(python, {"max": max, "min": min}, point) == truth, (vary, point, formula.text, formula.notes)
    assert tried


@pytest.mark.parametrize(
    ("factory", "vary", "text"),
    [
        (up_to_256, {"dim": "256,512,1024", "n_layer": "1:4"}, "n_layer·512·⌈dim/96⌉·dim"),
        (by_sixteens, {"d_model": [768, 1024, 1536]}, "⌈d_model/16⌉"),
        (a_third_wider, {"dim": [64, 512, 2304], "n_layer": [1, 2, 3]}, "⌈⌊13·⌊8·dim/3⌋/10⌋/256⌉"),
        (four_times, {"dim": [256, 512, 1024], "n": "1:3"}, "128·⌈dim/32⌉"),
    ],
)
def test_a_rounding_that_no_value_asked_for_shows_is_found_between_them(
    factory: Callable[..., nn.Module], vary: dict[str, Any], text: str
):
    assert text in tallystick.formula(factory, vary=vary).text


def test_the_points_next_to_a_step_are_tried():
    """The quotient dim/32 has just passed a whole number at 32·n + 1 and nears one at 32·n - 1."""
    rounding = ("ceil", ("*", 4, "dim"), 128)
    points = near_steps([rounding], [{"dim": 256, "n": 2}], {"dim": [range(1, 513)]})
    assert [point["dim"] for point in points] == [481, 449, 511, 479, 512, 480]


def test_what_holds_in_the_span_and_not_beyond_is_said_to():
    formula = tallystick.formula(capped, vary={"d": "16:128", "n": "1:3"})
    assert formula.expression == "n*d**2"
    assert any(note.startswith("only with d from 16 to 128 and n from 1 to 3: ") for note in formula.notes)


def test_a_range_with_a_step_is_of_its_steps_alone():
    formula = tallystick.formula(four_times, vary={"dim": "64:512:64", "n": "1:3"})
    assert formula.text == "n·4·dim²"
    assert any(note.startswith("only at multiples of 64 of dim: *.up.weight with dim=65, n=") for note in formula.notes)


# -- switches ------------------------------------------------------------------------------------


def switched(d: int = 16, n: int = 2, bias: bool = True, tie: bool = False) -> nn.Module:
    blocks = [nn.Sequential(nn.Linear(d, 4 * d, bias=bias), nn.Linear(4 * d, d, bias=bias)) for _ in range(n)]
    module = nn.ModuleDict(
        {"wte": nn.Embedding(50, d), "h": nn.ModuleList(blocks), "head": nn.Linear(d, 50, bias=bias)}
    )
    if tie:
        module["head"].weight = module["wte"].weight
    return module


@pytest.mark.parametrize(
    "vary",
    [
        {"bias": "true,false"},
        {"tie": [True, False], "d": [8, 16, 32]},
        {"bias": "True,False", "tie": "false,true", "d": "8:40", "n": "1:4"},
    ],
)
def test_a_boolean_is_a_factor_of_the_formula(vary: dict[str, Any]):
    formula = tallystick.formula(switched, vary=vary)
    for bias in {True, formula.symbols.get("bias", True)} | ({False} if "bias" in vary else set()):
        for tie in (True, False) if "tie" in vary else (False,):
            sizes = {name: value for name, value in {"d": 24, "n": 5}.items() if name in vary}
            truth = total(switched(**sizes, bias=bias, tie=tie))
            assert eval(formula.expression, {}, {**sizes, "bias": bias, "tie": tie}) == truth


# -- what is refused, and when --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "values"),
    [
        ("64:512:64", range(64, 513, 64)),
        ((64, 512, 64), range(64, 513, 64)),
        ((1, 4), range(1, 5)),
        ([64, 512, 16], [16, 64, 512]),
        (range(1, 9, 3), range(1, 9, 3)),
        ("true,false", [False, True]),
        ((True, False), [False, True]),
    ],
)
def test_strings_and_tuples_are_ranges_and_lists_are_values(given: Any, values: Any):
    assert choices_of("d", given) == values


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((256, 512, 1024), r"a tuple means lowest, highest, step; for values write the list \[256, 512, 1024\]"),
        ((1, 2, 4, 8), r"for values write the list \[1, 2, 4, 8\]"),
        ("true", "write true,false"),
        ("true,3", "cannot be varied over 'true,3'"),
        ([True, 3, 4], "cannot be varied over"),
        ("2,4", "has 2 values; a formula needs at least 3"),
        ("64:", "cannot be varied over '64:'"),
    ],
)
def test_an_ambiguous_range_is_refused_with_what_to_write(given: Any, message: str):
    with pytest.raises(BadInput, match=message):
        choices_of("d", given)


def test_bad_arguments_are_refused_before_the_factory_is_imported(tmp_path, monkeypatch):
    (tmp_path / "heavy_model.py").write_text(
        "raise RuntimeError('imported')\n\ndef build(width=8, *, depth=2):\n    pass\n"
    )
    monkeypatch.chdir(tmp_path)
    for vary, message in (
        ({"width": "2,4"}, "has 2 values; a formula needs at least 3"),
        ({"width": "2-4"}, "cannot be varied over"),
        ({"widht": "2:9"}, "takes no argument 'widht'; nearest: width"),
        ({"width": "2:9", "depth": "many"}, "depth cannot be varied"),
    ):
        with pytest.raises(BadInput, match=message):
            tallystick.formula("heavy_model:build", vary=vary)
    assert "heavy_model" not in sys.modules


def test_a_factory_that_never_builds_on_the_meta_device_is_given_up_after_a_few_calls():
    calls = 0

    def moved(d: int, n: int) -> nn.Module:
        nonlocal calls
        calls += 1
        return nn.Linear(d, n).to("cpu")

    with pytest.raises(BadInput, match=r"moved fails at all of the first 5 points: .*meta tensor.*it must build under"):
        tallystick.formula(moved, vary={"d": "1:90", "n": "1:90"})
    assert calls == 5


def test_the_value_that_leaves_no_tensor_is_named():
    def one_head(dim: int = 8, depth: int = 2, heads: int = 2) -> nn.Module:
        out = nn.Linear(dim, dim) if heads > 1 else nn.Identity()
        return nn.ModuleList(nn.ModuleDict({"to_q": nn.Linear(dim, dim * heads), "to_out": out}) for _ in range(depth))

    with pytest.raises(BadInput, match=r"to_out.*with heads=1 it is always absent, otherwise present"):
        tallystick.formula(one_head, vary={"depth": "1:4", "heads": [1, 2, 4, 8], "dim": [8, 16, 32]})
