"""Names and their numbers: stacks with holes, names that hold no number where one seems to be, and
names made to be slow.
"""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from checkpoint_models import TINY, TINY_SHAPES, TINY_UNIQUE, names
from checkpoints import write, write_config
from tallystick import count
from tallystick.core.budget import Budget
from tallystick.sources.checkpoint.rollup import roll_up


def test_numbers_that_leave_holes(tmp_path: Path):
    shapes = {f"h.{number}.mlp.c_fc.weight": (2, 3) for number in (0, 1, 2, 5, 11)}
    path = write(tmp_path / "a.safetensors", shapes)
    ledger = count(path)
    assert ledger.total == 30
    assert [entry.name for entry in ledger.entries] == list(shapes)
    assert list(ledger.by("layer")) == ["h.0", "h.1", "h.2", "h.5", "h.11"]


def test_numbers_that_leave_holes_in_a_grid(tmp_path: Path):
    """Five of six: two layers of three experts, of which one is not there."""
    pairs = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 2)]
    shapes = {f"layers.{layer}.experts.{expert}.w1.weight": (2,) for layer, expert in pairs}
    ledger = count(write(tmp_path / "a.safetensors", shapes))
    assert ledger.total == 10
    assert names(ledger) == set(shapes)


def test_a_stack_whose_shapes_differ(tmp_path: Path):
    shapes = {f"h.{number}.mlp.c_fc.weight": (2, 3 + number % 2) for number in range(6)}
    ledger = count(write(tmp_path / "a.safetensors", shapes))
    assert ledger.total == 3 * 6 + 3 * 8
    assert {entry.name: entry.shape for entry in ledger.entries} == shapes


@pytest.mark.parametrize(
    "odd",
    [
        ["h.{}.w", "h.0.w", "h.1.w"], ["h.00.w", "h.01.w"], ["{", "}", "{}", "{0}", "{0.w}.1.w"], ["h.00.w", "h.01.w", "h.0.w", "h.1.w"],
        ["0.w", "1.w"], ["h.0", "h.1"], ["h.9999999999.w", "h.0.w"], ["h.-1.w", "h.0.w"], ["h.٣.w", "h.3.w"],
        ["h.1.2.w", "h.1.3.w", "h.2.2.w"], ["0.0.0", "0.0.1", "0.1.0"], ["", ".", "..", ".0.", "0"], ["%s", "%d.0.w"],
        ["weight"], ["h.0.w", "h.0.w.0"],
    ],
    ids=str,
)  # fmt: skip
def test_odd_names_are_kept(tmp_path: Path, odd: list[str]):
    path = write(tmp_path / "model.safetensors", dict.fromkeys(odd, (2,)))
    ledger = count(path)
    assert sorted(entry.name for entry in ledger.entries) == sorted(odd)
    assert ledger.total == 2 * len(odd)
    assert ledger.ties == ()
    assert ledger.by("tensor") == dict.fromkeys(names(ledger), 2)


def test_odd_names_beside_a_config(tmp_path: Path):
    odd = {"transformer.h.{}.ln_1.weight": (8,), "h.{}.ln_1.weight": (8,), "h.00.ln_1.weight": (8,), "{": (1,)}
    write(tmp_path / "model.safetensors", {**TINY_SHAPES, **odd})
    write_config(tmp_path, TINY)
    ledger = count(tmp_path)
    assert ledger.total == TINY_UNIQUE + 25
    assert set(ledger.mismatches) == {"unexpected"}
    assert set(ledger.mismatches["unexpected"]) == set(odd)


@pytest.mark.parametrize(
    "names",
    [
        ["h.0.w", "h.999999999.w"],  # a range over all between them would not end
        [".".join(["0"] * 20_000), ".".join(["0"] * 19_999 + ["1", "w"])],  # nor may numbers nest without end
        [f"h.{number}.w{number}" for number in range(0, 60_000, 2)],
    ],
    ids=["far apart", "many numbers", "many kinds"],
)
def test_names_made_to_be_slow(tmp_path: Path, names: list[str]):
    write(tmp_path / "model.safetensors", {name: (place % 7 + 1,) for place, name in enumerate(names)})
    ledger = count(tmp_path)
    assert {entry.name for entry in ledger.entries} == set(names)
    assert sum(ledger.by("layer").values()) == ledger.total


def _as_letters(number: int) -> str:
    return str(number).translate(str.maketrans("0123456789", "abcdefghij"))


MANY = {
    "layers": [f"h.{number}.w" for number in range(4000)],
    "parts of layers": [f"h.{number}.{part}.w" for number in range(1000) for part in "abcdefgh"],
    "layers with holes": [f"h.{number * number}.w" for number in range(4000)],
    "numbers in a name": [f"h.{number}.1.2.3.4.w" for number in range(4000)],
    "kinds": [f"{_as_letters(number)}.weight" for number in range(4000)],
    "long names": ["x" * 500 + _as_letters(number) for number in range(1000)],
}


@pytest.mark.parametrize("kind", MANY)
def test_the_memory_that_names_take_is_asked_for(kind: str, monkeypatch: pytest.MonkeyPatch):
    """Neither far less than Python takes, nor far more."""
    asked: list[int] = []
    monkeypatch.setattr(Budget, "keep", lambda _, size, __: asked.append(size))
    listed = [(name, "float32", (2,)) for name in MANY[kind]]
    tracemalloc.start()
    try:
        rolled = list(roll_up(listed))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert sum(entry.copies for entry in rolled) == len(listed)
    assert peak / 4 < sum(asked) < 1.85 * peak


@pytest.mark.parametrize("wider", [40, 30], ids=["alike", "the last layers wider"])
@pytest.mark.parametrize(
    "odd", ["h.007.w", "h.{}.w", "h.99.w.more", "h.12345678901.w", "h.1.1.w", "x.h.99.w", "h.99.v", "h.99xw", "w.1", ""]
)
def test_a_name_among_many_layers_is_kept(odd: str, wider: int):
    """A name is told by what followed the one before in the layers below, where it is alike to the
    last character.
    """
    layers = {f"h.{layer}.{part}": (2 + (layer >= wider),) for layer in range(40) for part in ("v", "w", "experts.3.w")}
    for place in (len(layers) - 10, len(layers) - 9, len(layers) - 8):
        listed = [*layers.items()]
        listed.insert(place, (odd, (5,)))
        rolled = roll_up((name, "float32", shape) for name, shape in listed)
        singles = [single for entry in rolled for single in entry.unrolled()]
        assert sorted((single.name, single.shape) for single in singles) == sorted(listed)
