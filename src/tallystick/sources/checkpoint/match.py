"""Laying real tensors beside those that a config describes: what is missing, unexpected, misshaped.

Checkpoints of one model differ in a prefix (GPT-2's published file has `wte.weight`, the model
`transformer.wte.weight`), so the prefix under which most tensors agree is found first.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import NamedTuple

from tallystick.core.ledger import Axis, Entry, Ledger
from tallystick.core.packed_names import model_name
from tallystick.core.tensor_names import template_of
from tallystick.sources.quantized.codebook import PADDED_TO

# What wraps a model while it trains or runs puts its own before every name, one before the other.
_TRAINING = ("module.", "_orig_mod.", "_fsdp_wrapped_module.", "_checkpoint_wrapped_module.")
WRAPPERS = ("module.", "_orig_mod.", "model.", "language_model.", "base_model.model.")
# What other classes of transformers call the body of the same model: those for images and text, for answering questions.
_BODIES = ("model.language_model.", "transformer.")


class Match(NamedTuple):
    """Real entries paired with described ones; a stack that agrees only in part is paired tensor by tensor."""

    pairs: list[tuple[Entry, Entry | None]]  # (real, what the config calls so), in the real order
    missing: list[str]  # names that the config describes and that are not there
    misshaped: list[str]  # "name: (2, 3) where the config says (2, 4)"
    prefix: tuple[str, str]  # (taken from a real name, then put before it) to get the described one
    elsewhere: Mapping[str, str]  # described names whose real ones have the body's prefix too, or that of packed values

    @property
    def agreeing(self) -> int:
        """Tensors that are there as described, less those that are not: how well the config fits."""
        return sum(real.copies for real, told in self.pairs if told) - len(self.missing) - 2 * len(self.misshaped)

    def real_name(self, described: str) -> str:
        """What the real tensors would call a described name."""
        taken, put = self.prefix
        return self.elsewhere.get(described) or taken + described.removeprefix(put)

    def mismatches(self, *, excused: Container[str] = ()) -> dict[str, list[str]]:
        """The names on which the two disagree, but for those that are absent, or there, for a reason."""
        strange = (real for real, told in self.pairs if told is None and not real.buffer)
        return {
            "missing": [name for name in self.missing if name not in excused],
            "unexpected": [one.name for real in strange for one in real.unrolled() if one.name not in excused],
            "misshaped": self.misshaped,
        }


def match(real: Sequence[Entry], described: Ledger) -> Match:
    """Find each real entry in a described ledger, by name and shape."""
    expected = _expected(described.rolled)
    templates = [_name_today(entry.name if entry.axes else template_of(entry.name)[0], entry) for entry in real]
    roots = sorted({name.split(".", 1)[0] + "." for name in expected if name.count(".") > 1})
    taken, put = _prefix(templates, roots, expected)
    held = {template.removeprefix(taken) for template in templates}
    elsewhere: dict[str, str] = {}
    pairs: list[tuple[Entry, Entry | None]] = []
    misshaped: list[str] = []
    seen: dict[Entry, set[tuple[int, ...]] | None] = {}  # numbers of a described stack; None is all of them

    def look(entry: Entry) -> None:
        bare = entry.name.removeprefix(taken)
        template, written = (bare, ()) if entry.axes else template_of(bare)
        numbers = tuple(int(number) for number in written if number == str(int(number)))  # 007 is no layer's number
        # The head stands outside the prefix, so a name that needs no prefix is taken as it is.
        runs = expected.get(put + template) or expected.get(template) or []
        if not runs and (unpacked := _name_today(template, entry)) != template:
            runs = expected.get(put + unpacked) or expected.get(unpacked) or []
            if runs and not entry.axes:
                elsewhere[runs[0].name.format(*numbers)] = entry.name
        if not runs and not entry.axes and (outside := _outside(template, roots)) in expected and outside not in held:
            runs = expected[outside]
            elsewhere[outside] = entry.name
        if entry.axes:
            told = next((run for run in runs if run.axes == entry.axes), None)
            if runs and told is None:
                for single in entry.unrolled():
                    look(single)
                return
        else:
            told = next((run for run in runs if _within(numbers, run.axes)), None)
        if told is None:
            pairs.append((entry, None))
            return
        if entry.axes:
            seen[told] = None
        elif (numbers_seen := seen.setdefault(told, set())) is not None:
            numbers_seen.add(numbers)
        shape = tuple(int(size) for size in told.shape)
        if entry.packed is not None and _stands_for(entry, shape):
            entry = entry._replace(shape=shape, unique=math.prod(shape) if entry.unique else 0)
        pairs.append((entry, told))
        if entry.shape != shape:
            misshaped.extend(f"{one.name}: {entry.shape} where the config says {shape}" for one in entry.unrolled())

    for entry in real:
        look(entry)
    missing = [name for runs in expected.values() for told in runs for name in _unseen(told, seen.get(told, set()))]
    return Match(pairs, missing, misshaped, (taken, put), elsewhere)


def _stands_for(entry: Entry, shape: tuple[int, ...]) -> bool:
    """Whether packed values are those of a weight of that shape, where their own is not noted, or filled up."""
    if len(entry.shape) == 1:
        return entry.size == math.prod(shape)
    multiple = PADDED_TO.get(entry.dtype, 1)
    return entry.shape == tuple(-(-size // multiple) * multiple for size in shape)


def _name_today(stored: str, entry: Entry) -> str:
    """What the model calls a stored tensor: a packed one, or one of a vision tower, which once had a model inside."""
    return model_name(stored, packed=entry.packed is not None).replace("vision_tower.vision_model.", "vision_tower.")


def _expected(rolled: Iterable[Entry]) -> dict[str, list[Entry]]:
    """Described entries by template, with runs of one stack joined: layers 0 to 2 and 3 to 60 of one shape are 0 to 60."""
    by_template: dict[str, list[Entry]] = {}
    for entry in map(_all_numbers_as_axes, _one_by_one(rolled)):
        runs = by_template.setdefault(entry.name, [])
        if entry.axes and runs and _continues(runs[-1], entry):
            before = runs.pop()
            first = Axis(before.axes[0].start, before.axes[0].length + entry.axes[0].length)
            runs.append(before._replace(axes=(first, *entry.axes[1:])))
        else:
            runs.append(entry)
    return by_template


def _one_by_one(rolled: Iterable[Entry]) -> Iterator[Entry]:
    """Stacks, but for those whose tensors are numbered themselves, as ``queries.{}``: from stored names no last number is taken."""
    for entry in rolled:
        yield from entry.unrolled() if entry.name.endswith("{}") else (entry,)


def _continues(before: Entry, entry: Entry) -> bool:
    """Whether a run of layers begins where another of the same tensors ends: with a dense layer between, it does not."""
    end = before.axes[0].start + before.axes[0].length
    return (before.shape, before.axes[1:], end) == (entry.shape, entry.axes[1:], entry.axes[0].start)


def _all_numbers_as_axes(entry: Entry) -> Entry:
    """`h.{}.ff.layers.2.weight` as `h.{}.ff.layers.{}.weight`, whose last axis is the number 2 alone."""
    axes = iter(entry.axes)
    parts, all_axes = [], []
    *above, last = entry.name.split(".")
    for part in above:
        number = part == "{}" or part.isdecimal()
        if number:
            all_axes.append(next(axes) if part == "{}" else Axis(int(part), 1))
        parts.append("{}" if number else part)
    return entry._replace(name=".".join([*parts, last]), axes=tuple(all_axes))


def _prefix(templates: Sequence[str], roots: Sequence[str], expected: Container[str]) -> tuple[str, str]:
    wrapped = ""
    while more := next((one for one in _TRAINING if _all_start(templates, wrapped + one)), ""):
        wrapped += more
    begins = Counter(template.partition(".")[0] + "." for template in templates).most_common(1)
    bodies = dict.fromkeys(("", *WRAPPERS, *_BODIES, wrapped, *(first for first, _ in begins)))
    candidates = [(taken, put) for taken in bodies for put in ("", *roots)]
    return best_prefix(candidates, templates, expected)


def best_prefix(candidates: Iterable[tuple[str, str]], names: Sequence[str], known: Container[str]) -> tuple[str, str]:
    """What to take from names and then to put before them, so that most of them are known ones."""

    def agreeing(candidate: tuple[str, str]) -> int:
        taken, put = candidate
        return sum(name.startswith(taken) and put + name.removeprefix(taken) in known for name in names)

    return max(candidates, key=agreeing)  # the first of equals: no change, where that comes first and is as good


def _all_start(templates: Sequence[str], prefix: str) -> bool:
    return bool(templates) and all(name.startswith(prefix) for name in templates)


def _outside(template: str, roots: Sequence[str]) -> str:
    """A name without the body's prefix, as loaders read it too: `model.lm_head.weight` is `lm_head.weight`."""
    return template.removeprefix(next((root for root in roots if template.startswith(root)), ""))


def _within(numbers: tuple[int, ...], axes: tuple[Axis, ...]) -> bool:
    if len(numbers) != len(axes):  # a real name may hold a {} of its own, or a 007
        return False
    return all(axis.start <= number < axis.start + axis.length for number, axis in zip(numbers, axes, strict=True))


def _unseen(told: Entry, seen: set[tuple[int, ...]] | None) -> list[str]:
    if seen is None:
        return []
    grid = product(*(range(axis.start, axis.start + axis.length) for axis in told.axes))
    return [told.name.format(*numbers) for numbers in grid if numbers not in seen]
