"""Compare two models: causes that sum exactly to the gap between their parameter counts.

Two configs of one family are compared key by key, from one config to the other. Any other two
models are matched tensor by tensor, and the differences are put in words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tallystick.answers.compare.align import Pair, align, in_common
from tallystick.answers.compare.causes import Cause, Side, causes_of, in_order
from tallystick.answers.compare.config_walk import walk
from tallystick.answers.compare.tensor_group import TensorGroup
from tallystick.answers.compare.tensor_groups import tensor_groups
from tallystick.core.description import Recipe
from tallystick.core.display import Displayed
from tallystick.core.ledger import Ledger
from tallystick.errors import BadInput

MOST_SAID = 3  # examples of tensors that were matched by structure


@dataclass(frozen=True)
class Row:
    """Tensors that differ, in all layers together; None if a model has no counterpart."""

    name_a: str | None
    name_b: str | None
    shape_a: tuple[int, ...] | None  # of one tensor; of the first, if several correspond to one in the other model
    shape_b: tuple[int, ...] | None
    parameters: int  # b's minus a's


@dataclass(frozen=True, repr=False)
class Comparison(Displayed):
    """The difference of two models: `gap` is b's minus a's parameters, and the causes sum to it.

    >>> import tallystick
    >>> answer = tallystick.compare("gpt2", "gpt2-medium")
    >>> answer.gap == sum(cause.parameters for cause in answer.causes) == 354_823_168 - 124_439_808
    True
    """

    source_a: str
    source_b: str
    total_a: int
    total_b: int
    gap: int
    bytes_a: int
    bytes_b: int
    sentence: str
    causes: tuple[Cause, ...]
    aligned: tuple[str, ...]  # how the tensors of the two models were matched
    tensors: tuple[Row, ...]

    @property
    def different(self) -> bool:
        """Whether any cause changes parameters; another dtype or fusion does not."""
        return any(cause.parameters for cause in self.causes)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON of ``tallystick compare``. Keys are a contract: added, never renamed."""
        causes = [{**asdict(cause), "names": list(cause.names), "keys": list(cause.keys)} for cause in self.causes]
        tensors = [
            {**asdict(row), "shape_a": row.shape_a and list(row.shape_a), "shape_b": row.shape_b and list(row.shape_b)}
            for row in self.tensors
        ]
        return {**asdict(self), "causes": causes, "aligned": list(self.aligned), "tensors": tensors}


def compare(a: Ledger, b: Ledger) -> Comparison:
    """Explain the difference in parameters from a to b.

    Args:
        a: the first model.
        b: the second model.

    Raises:
        BadInput: if the two have nothing in common.
    """
    label_a, label_b = (a.source, b.source) if a.source != b.source else (f"A ({a.source})", f"B ({b.source})")
    groups_a, groups_b = tensor_groups(a.rolled), tensor_groups(b.rolled)
    pairs = align(groups_a, groups_b)
    recipe_a, recipe_b = _recipe(a), _recipe(b)
    if recipe_a and recipe_b and recipe_a.family == recipe_b.family:
        causes = walk(recipe_a, recipe_b.values)
        aligned: tuple[str, ...] = (f"changed A's {recipe_a.family} config to B's, one key at a time",)
    else:
        if pairs and not in_common(pairs):
            raise BadInput(
                f"{label_a} ({a.total:,} parameters) and {label_b} ({b.total:,}) have no tensors in common, by"
                " name or by role",
                code="no-answer",
            )
        side_a = Side.of(label_a, groups_a, [group for pair in pairs if pair.b for group in pair.a], _meant(a))
        side_b = Side.of(label_b, groups_b, [group for pair in pairs if pair.a for group in pair.b], _meant(b))
        causes = causes_of(pairs, side_a, side_b)
        aligned = _how(pairs)
    gap = b.total - a.total
    causes += _dtypes(a, b)
    ordered = in_order(causes)
    return Comparison(
        source_a=a.source,
        source_b=b.source,
        total_a=a.total,
        total_b=b.total,
        gap=gap,
        bytes_a=a.totals["bytes"] or 0,
        bytes_b=b.totals["bytes"] or 0,
        sentence=_sentence(label_a, label_b, a.total, b.total, ordered),
        causes=ordered,
        aligned=aligned,
        tensors=tuple(sorted((_row(pair) for pair in pairs if _differs(pair)), key=lambda row: -abs(row.parameters))),
    )


def _recipe(ledger: Ledger) -> Recipe | None:
    """Return the config that describes this ledger exactly; None if config and tensors disagree."""
    described, mismatches = ledger.evidence.described, ledger.evidence.mismatches
    if described is not None and (described.total != ledger.total or any(mismatches.values())):
        return None
    return ledger.model.recipe


def _meant(ledger: Ledger) -> set[str]:
    """Return the names that the model or its config declares tied."""
    return {name for names in ledger.evidence.declared or () for name in names}


def _dtypes(a: Ledger, b: Ledger) -> list[Cause]:
    """Return a cause without parameters if the dtypes differ: only the bytes differ."""
    mine, others = a.by("dtype"), b.by("dtype")
    if mine.keys() == others.keys() or not (mine and others):
        return []
    return [Cause("dtype", f"dtype {' and '.join(mine)} → {' and '.join(others)}", 0, ())]


def _sentence(label_a: str, label_b: str, total_a: int, total_b: int, causes: Sequence[Cause]) -> str:
    gap = total_b - total_a
    counted = sorted((cause for cause in causes if cause.parameters), key=lambda cause: -abs(cause.parameters))
    if not counted:
        return f"{label_b} and {label_a} both have {total_a:,} parameters"
    first, *others = counted
    why = first.what
    if others:
        why = (
            f"mainly {why} ({first.parameters:+,}), plus {len(others)} other {'causes' if len(others) > 1 else 'cause'}"
        )
    if not gap:
        return f"{label_b} and {label_a} both have {total_a:,} parameters; the differences cancel out: {why}"
    return (
        f"{label_b} has {abs(gap):,} {'more' if gap > 0 else 'fewer'} parameters than {label_a}"
        f" ({total_b:,} vs. {total_a:,}): {why}"
    )


# -- how tensors were matched ---------------------------------------------------------------------


def _how(pairs: Sequence[Pair]) -> tuple[str, ...]:
    said = {
        "name": "matched by name",
        "wrapped": "matched by name, ignoring prefixes and wrappers",
        "structure": "matched by structure (role, layer, order, shape)",
    }
    both = [pair for pair in pairs if pair.a and pair.b]
    counts: Counter[str] = Counter()
    for pair in both:
        counts[pair.how] += sum(group.copies for group in pair.b)
    lines = []
    for how, words in said.items():
        examples = [f"{_names(pair.a)} with {_names(pair.b)}" for pair in both if pair.how == how]
        shown = "; ".join(examples[:MOST_SAID]) + ("; …" if len(examples) > MOST_SAID else "")
        if counts[how]:
            lines.append(f"{_tensors(counts[how])} {words}" + ("" if how == "name" else f": {shown}"))
    turned = sum(
        group.copies
        for pair in both
        for one, group in zip(pair.a, pair.b, strict=False)
        if len(pair.a) == len(pair.b) and one.shape != group.shape and one.shape == group.shape[::-1]
    )
    if turned:
        lines.append(f"{_tensors(turned)} transposed")
    return tuple(lines)


def _tensors(count: int) -> str:
    return f"{count:,} tensor" + ("" if count == 1 else "s")


def _names(groups: Sequence[TensorGroup]) -> str:
    return " + ".join(group.title for group in groups)


def _differs(pair: Pair) -> bool:
    return _gap(pair) != 0 or len(pair.a) != len(pair.b)


def _gap(pair: Pair) -> int:
    return sum(group.parameters for group in pair.b) - sum(group.parameters for group in pair.a)


def _row(pair: Pair) -> Row:
    return Row(
        name_a=_names(pair.a) or None,
        name_b=_names(pair.b) or None,
        shape_a=pair.a[0].shape if pair.a else None,
        shape_b=pair.b[0].shape if pair.b else None,
        parameters=_gap(pair),
    )
