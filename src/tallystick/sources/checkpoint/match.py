"""Match stored tensors with described ones: missing, unexpected and misshaped tensors.

Checkpoints of one model differ in a prefix: GPT-2's published file has `wte.weight`, the model
`transformer.wte.weight`. So the prefix under which most names agree is found first.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import NamedTuple

from tallystick.core.entries import Axis, Entry
from tallystick.core.ledger import Ledger
from tallystick.core.packed_names import model_name
from tallystick.core.tensor_names import template_of
from tallystick.sources.quantized.codebook import PADDED_TO

# Prefixes that training wrappers (DDP, torch.compile, FSDP) put before every name; they may be
# nested.
_TRAINING = ("module.", "_orig_mod.", "_fsdp_wrapped_module.", "_checkpoint_wrapped_module.")
WRAPPERS = ("module.", "_orig_mod.", "model.", "language_model.", "base_model.model.")
# Names of the model's body in other transformers classes, such as those for images or question
# answering.
_BODIES = ("model.language_model.", "transformer.")


class Match(NamedTuple):
    """Stored entries paired with described ones.

    A stack that agrees only in part is paired one by one.
    """

    pairs: list[tuple[Entry, Entry | None]]  # (stored, described or None), in the stored order
    missing: list[str]  # described names that are not stored
    misshaped: list[str]  # messages: "name: (2, 3), but (2, 4) in the config"
    prefix: tuple[str, str]  # (removed from a stored name, then put before it) to get the described name
    elsewhere: Mapping[str, str]  # described name -> stored name, where `prefix` does not apply

    @property
    def agreeing(self) -> int:
        """A score of the fit: matched tensors, less missing ones, less misshaped ones twice."""
        return (
            sum(real.copies for real, counterpart in self.pairs if counterpart)
            - len(self.missing)
            - 2 * len(self.misshaped)
        )

    def real_name(self, described: str) -> str:
        """Return the stored name of a described tensor."""
        taken, put = self.prefix
        return self.elsewhere.get(described) or taken + described.removeprefix(put)

    def mismatches(self, *, excused: Container[str] = ()) -> dict[str, list[str]]:
        """Return the missing, unexpected and misshaped tensors.

        Args:
            excused: names that may be missing or unexpected.
        """
        strange = (real for real, counterpart in self.pairs if counterpart is None and not real.buffer)
        return {
            "missing": [name for name in self.missing if name not in excused],
            "unexpected": [one.name for real in strange for one in real.unrolled() if one.name not in excused],
            "misshaped": self.misshaped,
        }


def match(real: Sequence[Entry], described: Ledger) -> Match:
    """Match each stored entry with a described one, by name and shape.

    Args:
        real: the stored entries.
        described: the ledger of the config.
    """
    expected = _expected(described.rolled)
    templates = [_name_today(entry.name if entry.axes else template_of(entry.name)[0], entry) for entry in real]
    roots = sorted({name.split(".", 1)[0] + "." for name in expected if name.count(".") > 1})
    taken, put = _prefix(templates, roots, expected)
    held = {template.removeprefix(taken) for template in templates}
    elsewhere: dict[str, str] = {}
    pairs: list[tuple[Entry, Entry | None]] = []
    misshaped: list[str] = []
    seen: dict[Entry, set[tuple[int, ...]] | None] = {}  # matched indices of a described stack; None means all

    def look(entry: Entry) -> None:
        bare = entry.name.removeprefix(taken)
        template, written = (bare, ()) if entry.axes else template_of(bare)
        numbers = tuple(int(number) for number in written if number == str(int(number)))  # 007 is not a layer's index
        # The head is outside the prefixed body, so a name may also match without the prefix.
        runs = expected.get(put + template) or expected.get(template) or []
        if not runs and (unpacked := _name_today(template, entry)) != template:
            runs = expected.get(put + unpacked) or expected.get(unpacked) or []
            if runs and not entry.axes:
                elsewhere[runs[0].name.format(*numbers)] = entry.name
        if not runs and not entry.axes and (outside := _outside(template, roots)) in expected and outside not in held:
            runs = expected[outside]
            elsewhere[outside] = entry.name
        if entry.axes:
            counterpart = next((run for run in runs if run.axes == entry.axes), None)
            if runs and counterpart is None:
                for single in entry.unrolled():
                    look(single)
                return
        else:
            counterpart = next((run for run in runs if _within(numbers, run.axes)), None)
        if counterpart is None:
            pairs.append((entry, None))
            return
        if entry.axes:
            seen[counterpart] = None
        elif (numbers_seen := seen.setdefault(counterpart, set())) is not None:
            numbers_seen.add(numbers)
        shape = tuple(int(size) for size in counterpart.shape)
        if entry.packed is not None and _stands_for(entry, shape):
            entry = entry._replace(shape=shape, unique=math.prod(shape) if entry.unique else 0)
        pairs.append((entry, counterpart))
        if entry.shape != shape:
            misshaped.extend(f"{one.name}: {entry.shape}, but {shape} in the config" for one in entry.unrolled())

    for entry in real:
        look(entry)
    missing = [
        name
        for runs in expected.values()
        for counterpart in runs
        for name in _unseen(counterpart, seen.get(counterpart, set()))
    ]
    return Match(pairs, missing, misshaped, (taken, put), elsewhere)


def _stands_for(entry: Entry, shape: tuple[int, ...]) -> bool:
    """Return whether a packed entry can hold a weight of `shape`.

    Its own shape may be unrecorded (one dimension) or padded.
    """
    if len(entry.shape) == 1:
        return entry.size == math.prod(shape)
    multiple = PADDED_TO.get(entry.dtype, 1)
    return entry.shape == tuple(-(-size // multiple) * multiple for size in shape)


def _name_today(stored: str, entry: Entry) -> str:
    """Return the current model's name of a stored tensor.

    Packed weights lose their suffix, and old vision towers their inner model.
    """
    return model_name(stored, packed=entry.packed is not None).replace("vision_tower.vision_model.", "vision_tower.")


def _expected(rolled: Iterable[Entry]) -> dict[str, list[Entry]]:
    """Group described entries by template, joining consecutive runs of layers with equal shapes."""
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
    """Unroll stacks whose names end in an index, such as ``queries.{}``.

    Stored names keep that index.
    """
    for entry in rolled:
        yield from entry.unrolled() if entry.name.endswith("{}") else (entry,)


def _continues(before: Entry, entry: Entry) -> bool:
    """Return whether `entry` starts at the layer where `before` ends, with the same shape."""
    end = before.axes[0].start + before.axes[0].length
    return (before.shape, before.axes[1:], end) == (entry.shape, entry.axes[1:], entry.axes[0].start)


def _all_numbers_as_axes(entry: Entry) -> Entry:
    """Turn each index in a name into an axis.

    `h.{}.ff.layers.2.weight` becomes `h.{}.ff.layers.{}.weight`, with a last axis of only the index
    2.
    """
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
    """Return the (removed, added) prefixes that turn most names into known ones.

    Args:
        candidates: pairs of a prefix to remove and a prefix to add; the first of equally good ones
            wins.
        names: the names to change.
        known: the names to reach.
    """

    def agreeing(candidate: tuple[str, str]) -> int:
        taken, put = candidate
        return sum(name.startswith(taken) and put + name.removeprefix(taken) in known for name in names)

    return max(candidates, key=agreeing)  # the first of equally good ones


def _all_start(templates: Sequence[str], prefix: str) -> bool:
    return bool(templates) and all(name.startswith(prefix) for name in templates)


def _outside(template: str, roots: Sequence[str]) -> str:
    """Return a name without the body's prefix, as loaders do.

    `model.lm_head.weight` becomes `lm_head.weight`.
    """
    return template.removeprefix(next((root for root in roots if template.startswith(root)), ""))


def _within(numbers: tuple[int, ...], axes: tuple[Axis, ...]) -> bool:
    if len(numbers) != len(axes):  # a stored name may contain a literal {} or 007
        return False
    return all(axis.start <= number < axis.start + axis.length for number, axis in zip(numbers, axes, strict=True))


def _unseen(counterpart: Entry, seen: set[tuple[int, ...]] | None) -> list[str]:
    if seen is None:
        return []
    grid = product(*(range(axis.start, axis.start + axis.length) for axis in counterpart.axes))
    return [counterpart.name.format(*numbers) for numbers in grid if numbers not in seen]
