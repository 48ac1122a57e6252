"""Call a factory at many points; keep the models it builds and the points it refuses."""

from __future__ import annotations

import logging
import math
import random
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import product
from typing import Any, NamedTuple

from tallystick.core.entries import Entry
from tallystick.core.tensor_names import template_of
from tallystick.errors import BadInput
from tallystick.sources.factory.factory import build

MOST_TRIES = 3_000  # calls of a factory, including refused ones
# Give up after HOPELESS calls with the same refusal. An AssertionError or ValueError may depend on
# the point (heads that do not divide a width) without naming a number, so it gets more calls.
HOPELESS, HOPELESS_IF_OF_SIZES = 5, 100

# The requirement on a factory, for messages.
ON_META = "it must build under torch.device('meta'), so avoid .to(a device), .item() and .numpy()"

Point = dict[str, int]
Kind = tuple[str, tuple[Any, ...]]  # (template of the tied tensor or "", shape)


class Alike(NamedTuple):
    """Tensors of one model and one kind whose names differ only in their indices."""

    kind: Kind
    numbers: tuple[tuple[int, ...], ...]  # for each index in the name, its values
    copies: int
    first: Entry


class Built(NamedTuple):
    """The model that a factory builds at one point."""

    point: Point
    alike: Mapping[str, list[Alike]]  # by template, in the order of their first tensors
    total: int  # unique parameters

    @property
    def tensors(self) -> dict[str, Counter[Kind]]:
        """The number of tensors of each kind, by template."""
        return {template: Counter({one.kind: one.copies for one in group}) for template, group in self.alike.items()}


class _RefusedError(Exception):
    """The factory builds no model at this point."""


class Builds:
    """The models that a factory builds on the meta device, at points drawn from `choices`.

    A model costs its modules and no tensor memory. The points are the same in every run.
    """

    def __init__(
        self,
        name: str,
        target: Callable[..., Any],
        choices: Mapping[str, Sequence[int]],
        fixed: Mapping[str, Any],
        usual: Mapping[str, Any],
    ) -> None:
        self.name, self.choices = name, choices
        self.usual = dict(usual)  # the factory's defaults of the varied arguments; None if there is none
        self.built: list[Built] = []
        self.refusals: list[str] = []  # the factory's errors at the refused points
        self.elsewhere: list[Built] = []  # models at values outside of `choices`
        self._target, self._fixed = target, fixed
        self._reasons: set[str] = set()
        self._tried: set[tuple[int, ...]] = set()
        self._points = self._drawn()

    def more(self, number: int) -> list[Built]:
        """Build up to `number` new models; return fewer if there are no more points to try.

        Raises:
            BadInput: if one point gives two different models, or every point is refused for one
                reason.
        """
        new: list[Built] = []
        for point in self._points:
            try:
                built = self._build(point)
                if not self.built and built.tensors != self._build(point).tensors:
                    raise BadInput(
                        f"{self.name} built two different models with {stated(point)}, so it has no formula",
                        code="no-answer",
                    )
            except _RefusedError as refused:
                self.refusals.append(f"with {stated(point)} {refused}")
                self._reasons.add(str(refused))
                self._give_up_where_hopeless()
                continue
            self.built.append(built)
            new.append(built)
            if len(new) == number:
                break
        return new

    def at(self, points: Iterable[Point], most: int) -> list[Built]:
        """Build up to `most` models at untried points, and return them; skip refused points.

        Args:
            points: the points to try.
            most: the number of models after which to stop.
        """
        before = len(self.elsewhere)
        for point in points:
            values = tuple(point[argument] for argument in self.choices)
            if len(self.elsewhere) - before == most:
                break
            if values in self._tried or any(built.point == point for built in self.built):
                continue
            self._tried.add(values)
            try:
                self.elsewhere.append(self._build(point))
            except _RefusedError:
                continue
        return self.elsewhere[before:]

    def _give_up_where_hopeless(self) -> None:
        if self.built or len(self._reasons) > 1:
            return
        (reason,) = self._reasons
        of_sizes = "meta" not in reason and ("AssertionError" in reason or "ValueError" in reason)
        if len(self.refusals) >= (HOPELESS_IF_OF_SIZES if of_sizes else HOPELESS):
            raise BadInput(
                f"{self.name} fails at all of the first {len(self.refusals)} points: {reason}; {ON_META}",
                code="user-code",
            )

    def _build(self, point: Point) -> Built:
        import torch

        from tallystick.sources.factory.unfilled import unfilled
        from tallystick.sources.torch_module.module import ledger_from_module

        try:
            with torch.device("meta"), unfilled(), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # what matters at one size is noise at forty
                module = build(self.name, self._target, {**self._fixed, **point})
        except BadInput as refused:
            raise _RefusedError(str(refused)) from refused
        ledger = ledger_from_module(module)
        return Built(point, _by_template(self.name, ledger.parameters), ledger.total)

    def _drawn(self) -> Iterator[Point]:
        """Yield the points to try: the factory's defaults, then all points or a random sample."""
        dice = random.Random(0)  # noqa: S311  # points are to be spread, not secret
        seen = set()
        if all(self.usual[argument] in choices for argument, choices in self.choices.items()):
            seen.add(tuple(self.usual.values()))
            yield dict(self.usual)
        if math.prod(map(len, self.choices.values())) <= MOST_TRIES:
            everywhere = list(product(*self.choices.values()))
            dice.shuffle(everywhere)
            yield from (dict(zip(self.choices, values, strict=True)) for values in everywhere if values not in seen)
            return
        for _ in range(MOST_TRIES):
            # Half of the points are neighbours of a built one. They show the effect of one
            # argument, and are more likely to build if most combinations are refused.
            point = dict(dice.choice(self.built).point) if self.built and dice.random() < 0.5 else {}
            redrawn = [dice.choice(list(self.choices))] if point else list(self.choices)
            point |= {argument: _picked(self.choices[argument], dice) for argument in redrawn}
            values = tuple(point[argument] for argument in self.choices)
            if values not in seen:
                seen.add(values)
                yield dict(zip(self.choices, values, strict=True))


@contextmanager
def without_logs() -> Iterator[None]:
    """Silence logs for all sizes at once: each change of the level empties all loggers' caches."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)


def _picked(choices: Sequence[int], dice: random.Random) -> int:
    """Return a random choice, or the most divisible of three: heads must divide widths."""
    some = [dice.choice(choices) for _ in range(dice.choice((1, 3)))]
    return max(some, key=lambda value: math.gcd(value, 2**10 * 3**3 * 5 * 7))


def stated(point: Mapping[str, int]) -> str:
    """Return a point as users write it."""
    return ", ".join(
        f"{argument}={value}".lower() if isinstance(value, bool) else f"{argument}={value}"
        for argument, value in point.items()
    )


def _by_template(name: str, entries: Sequence[Entry]) -> dict[str, list[Alike]]:
    groups: dict[tuple[str, Kind], list[tuple[Entry, tuple[int, ...]]]] = {}
    for entry in entries:
        if entry.unique not in (0, entry.size):
            raise BadInput(
                f"{name}: {entry.name} shares part of {entry.storage}, which has no formula", code="no-answer"
            )
        template, numbers = _template_of(entry.name)
        tied = _template_of(entry.storage)[0] if entry.storage != entry.name else ""
        groups.setdefault((template, (tied, entry.shape)), []).append((entry, numbers))
    found: dict[str, list[Alike]] = {}
    for (template, kind), group in groups.items():
        places = tuple(tuple(sorted(set(column))) for column in zip(*(numbers for _, numbers in group), strict=True))
        found.setdefault(template, []).append(Alike(kind, places, len(group), group[0][0]))
    return found


def _template_of(name: str) -> tuple[str, tuple[int, ...]]:
    """Return a name with {} for each index, also a final one, as in a ParameterList."""
    template, numbers = template_of(name + ".")
    return template.removesuffix("."), tuple(map(int, numbers))
