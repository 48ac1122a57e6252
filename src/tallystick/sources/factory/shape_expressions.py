"""Express the shapes and counts of a factory's tensors in terms of the varied arguments."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tallystick.core.algebra.expressions import Expression, atoms, evaluate
from tallystick.sources.factory.build_cache import Alike, Built, Kind, stated
from tallystick.sources.factory.fit_expression import fit


class Stack(NamedTuple):
    """Tensors that are alike in every model: their count and shape as expressions."""

    template: str
    tied: str  # the template of the tensor that they are tied to, "" for none
    number: int  # index among the kinds of this template and tie, in printing order
    shape: tuple[Expression, ...]
    lengths: tuple[
        Expression | None, ...
    ]  # for each index in the name: how many values it takes; None if it is constant
    there: Expression = 1  # uses only switches: 1 if the model has these tensors, else 0

    @property
    def forms(self) -> list[Expression]:
        """All expressions of this stack."""
        return [self.there, *self.shape, *(length for length in self.lengths if length is not None)]

    def of(self, built: Built) -> Alike | None:
        """Return these tensors in one model; None if absent, or two kinds have one shape there."""
        alike = _of_tie(built, self.template, self.tied)
        return alike[self.number] if self.number < len(alike) else None


class UnexplainedError(Exception):
    """A size or count that no form fits."""


class Forms:
    """The forms of all sizes and counts in some models; equal values are fitted once."""

    def __init__(self, models: Sequence[Built]) -> None:
        self._models = models
        self._roundings: list[Expression] = []
        self._found: dict[tuple[tuple[int, ...], tuple[int, ...]], Expression | None] = {}

    def stacks(self) -> list[Stack]:
        """Return all tensors as stacks.

        Raises `UnexplainedError` for the first that nothing fits.
        """
        kinds = dict.fromkeys(
            (template, one.kind[0]) for built in self._models for template, some in built.alike.items() for one in some
        )
        try:
            return self._of_all(list(kinds))
        except UnexplainedError:
            if not self._roundings:
                raise
        # A rounding found late may be part of an earlier, unexplained size.
        self._found = {key: form for key, form in self._found.items() if form is not None}
        return self._of_all(list(kinds))

    def _of_all(self, kinds: Sequence[tuple[str, str]]) -> list[Stack]:
        stacks: list[Stack] = []
        failures: list[UnexplainedError] = []
        for template, tied in kinds:
            try:
                stacks += self._of(template, tied)
            except UnexplainedError as unexplained:
                failures.append(unexplained)
        if failures:
            raise failures[0]
        return stacks

    def _of(self, template: str, tied: str) -> Iterator[Stack]:
        """Yield the stacks of one template and tie, from models whose shapes are distinct."""
        name = shown(template)
        groups = [(built, _of_tie(built, template, tied)) for built in self._models]
        most = max(len(alike) for _, alike in groups)
        models = [built for built, alike in groups if len(alike) == most]
        absent = [built for built, alike in groups if not alike]
        there = self._there([built for built, alike in groups if alike], absent) if absent else 1
        if most > 1 or there != 1:
            # Absence counts as a length of 0 only if there is a single kind.
            absent = []
        for number in range(most):
            alike = [some[number] for _, some in groups if len(some) == most]
            if len({len(one.kind[1]) for one in alike}) > 1:
                raise UnexplainedError(f"{name} does not always have the same number of dimensions")
            sizes = zip(*(one.kind[1] for one in alike), strict=True)
            shape = [self._form(models, size, f"size {place} of {name}") for place, size in enumerate(sizes, 1)]
            counts = [[len(numbers) for numbers in one.numbers] for one in alike]
            if any(math.prod(count) != one.copies for count, one in zip(counts, alike, strict=True)):
                # The indices fill no grid, as when layers have different experts: only the total is
                # used.
                counts = [[one.copies, *[1] * (len(one.numbers) - 1)] for one in alike]
            lengths: list[Expression | None] = []
            for place, length in enumerate(zip(*counts, strict=True)):
                if len({one.numbers[place] for one in alike}) == 1 and set(length) == {1}:
                    lengths.append(None)
                    continue
                # if there are none, the first length is 0
                none = absent if not any(lengths) else []
                lengths.append(self._form(models + none, [*length, *[0] * len(none)], f"the number of {name}"))
            if absent and not any(lengths):
                raise UnexplainedError(_absent_line(name, models, absent))
            yield Stack(template, tied, number, tuple(shape), tuple(lengths), there)

    def _there(self, models: Sequence[Built], absent: Sequence[Built]) -> Expression:
        """Return an expression of switches that decides presence.

        1 if switches do not decide it.
        """
        points = [{a: v for a, v in built.point.items() if isinstance(v, bool)} for built in (*models, *absent)]
        found = fit(points, [1] * len(models) + [0] * len(absent)) if points[0] else None
        return 1 if found is None else found

    def _form(self, models: Sequence[Built], values: Sequence[int], what: str) -> Expression:
        key = (tuple(map(id, models)), tuple(values))
        if key not in self._found:
            self._found[key] = fit([built.point for built in models], values, self._roundings)
        form = self._found[key]
        if form is None:
            raise UnexplainedError(_unexplained_line(what, models, values))
        self._roundings += [a for a in atoms(form) if isinstance(a, tuple) and a not in self._roundings]
        return form


def difference(stacks: Sequence[Stack], built: Built) -> str | None:
    """Return how stacks contradict a model, in one line; None if they give each of its tensors.

    Args:
        stacks: the tensors as expressions.
        built: the model.
    """
    predicted: dict[str, Counter[Kind]] = {}
    for stack in stacks:
        try:
            there = evaluate(stack.there, built.point)
            copies = there and there * math.prod(evaluate(n, built.point) for n in stack.lengths if n is not None)
            shape = tuple(evaluate(size, built.point) for size in stack.shape) if there else ()
        except ZeroDivisionError:
            return f"the shape of {shown(stack.template)} divides by 0 with {stated(built.point)}"
        if copies:  # a fraction matches no size or count of the model, so it is reported below
            predicted.setdefault(stack.template, Counter())[stack.tied, shape] += copies  # type: ignore[assignment]
    tensors = built.tensors
    for template in {**tensors, **predicted}:
        here, there_predicted = tensors.get(template, Counter()), predicted.get(template, Counter())
        if here != there_predicted:
            return (
                f"{shown(template)} with {stated(built.point)} is {_listed(here)}, but the expression of the other"
                f" points gives {_listed(there_predicted)}"
            )
    return None


def shown(template: str) -> str:
    """Return a template as users write it, with `*` for each index."""
    return template.replace("{}", "*")


def _of_tie(built: Built, template: str, tied: str) -> list[Alike]:
    return [one for one in built.alike.get(template, ()) if one.kind[0] == tied]


def _unexplained_line(what: str, models: Sequence[Built], values: Sequence[int]) -> str:
    """Describe an unexplained number by three of its values.

    If one argument value always makes the number 0, name it.
    """
    seen = {value: built.point for built, value in zip(models, values, strict=True)}
    some = "; ".join(f"{value} with {stated(seen[value])}" for value in sorted(seen)[:3])
    with_none = [built for built, value in zip(models, values, strict=True) if not value]
    others = [built for built, value in zip(models, values, strict=True) if value]
    return f"{what} is {some}{_culprit(others, with_none)}"


def _absent_line(name: str, models: Sequence[Built], absent: Sequence[Built]) -> str:
    return f"{name} with {stated(absent[0].point)} is absent{_culprit(models, absent)}"


def _culprit(models: Sequence[Built], without: Sequence[Built]) -> str:
    """Name the argument value that all models in `without` have, and none of the others."""
    if without and models:
        for argument, value in without[0].point.items():
            if all(b.point[argument] == value for b in without) and all(b.point[argument] != value for b in models):
                return (
                    f"; with {stated({argument: value})} it is always absent, otherwise present: vary {argument}"
                    " without it"
                )
    return ""


def _listed(kinds: Counter[Kind]) -> str:
    """Return the counts and shapes of the tensors as text."""
    some = [f"{count} of shape {'×'.join(map(str, shape)) or '()'}" for (_, shape), count in kinds.items()]
    return (", ".join(some[:3]) + (" and more" if len(some) > 3 else "")) or "absent"
