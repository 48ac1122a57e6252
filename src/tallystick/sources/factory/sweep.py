"""Call a factory with many argument values and derive one ledger of expressions.

Every size and every number of copies is fitted as an expression of the varied arguments (`fit`).
The expressions must then give each tensor of every built model. This includes held-back models: at
requested values, at other values of each argument, and next to a rounding's step (`probes`). A
tensor that cannot be explained is reported, never guessed.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tallystick.core.algebra.dims import Dim
from tallystick.core.algebra.expressions import Expression, evaluate, keys
from tallystick.core.description import ModelDescription
from tallystick.core.entries import Axis, Entry
from tallystick.core.ledger import Ledger
from tallystick.errors import BadInput, nearest, quoted, shown
from tallystick.extras import needed
from tallystick.sources.factory.argument_values import FEWEST_VALUES, choices_of
from tallystick.sources.factory.build_cache import Builds, Built, Point, without_logs
from tallystick.sources.factory.factory import arguments_in_text, find
from tallystick.sources.factory.probes import between, beyond, lattice, near_steps, off, with_value
from tallystick.sources.factory.shape_expressions import Forms, Stack, UnexplainedError, difference
from tallystick.sources.locate import FACTORY

KNOWN, HELD_BACK = 25, 15  # models to fit at first, and models to check on
ROUNDS = 6  # of fitting; each adds the models that refuted the last forms
OTHER_VALUES = 4  # of each argument, between and beyond the requested ones
OFF_STEP = 12  # models at values that a stepped range skips
NEAR_STEPS = 100  # models next to a rounding's step


def ledger_by_varying(source: str | Callable[..., Any], vary: Mapping[str, Any], fixed: Mapping[str, Any]) -> Ledger:
    """Return the ledger of a factory's model, with sizes as expressions of the varied arguments.

    Args:
        source: ``"package.module:factory"``, or the factory itself.
        vary: the values of each argument: ``"64:256"``, ``"64:256:32"``, ``"64,128,256"`` or
            ``"true,false"``; a tuple ``(64, 256)`` or ``(64, 256, 32)`` of lowest, highest and
            step; a `range`; a list of values.
        fixed: arguments that are the same in every call; all others keep the factory's defaults.

    Raises:
        BadInput: if there is no such argument, too few points build, or a tensor has no formula.
    """
    if not isinstance(source, str) and not callable(source):
        raise BadInput(f"cannot vary {shown(source)}: expected package.module:factory, or a function", code="bad-value")
    if isinstance(source, str) and not FACTORY.fullmatch(source):
        raise BadInput(
            f"{quoted(source)} has no arguments to vary: name package.module:factory, a function that returns"
            " an nn.Module (formulas of configs and presets use all their keys already)",
            code="bad-value",
        )
    name = source if isinstance(source, str) else getattr(source, "__qualname__", type(source).__name__)
    if not isinstance(vary, Mapping):
        raise BadInput(f"vary is {shown(vary)}, expected a dictionary of arguments and their values", code="bad-value")
    if not vary:
        raise BadInput(f"{name}: name an argument to vary", code="bad-value")
    choices = {argument: choices_of(argument, given) for argument, given in vary.items()}
    for argument in choices:
        if argument in fixed:
            raise BadInput(f"{argument} is both varied and set: keep one", code="conflicting-options")
    if isinstance(source, str):  # before the import, which may load torch
        _refuse_unknown(name, arguments_in_text(source), choices, fixed)
    target = find(source) if isinstance(source, str) else source
    needed("torch", name)
    parameters = _parameters(target)
    if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        _refuse_unknown(name, parameters, choices, fixed)
    defaults = {argument: parameters[argument].default for argument in choices if argument in parameters}
    builds = Builds(name, target, choices, fixed, {argument: defaults.get(argument) for argument in choices})
    with without_logs():
        return _assembled(builds, _explained(builds))


def _parameters(target: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(target).parameters
    except (TypeError, ValueError):  # a non-function is refused when it is called
        return {}


def _refuse_unknown(name: str, known: Any, choices: Mapping[str, Any], fixed: Mapping[str, Any]) -> None:
    """Raise `BadInput` for an argument that the factory does not have.

    Pass all if none are known.
    """
    for argument in (*choices, *fixed) if known else ():
        if argument not in known:
            raise BadInput(f"{name} takes no argument {quoted(argument)}{nearest(argument, known)}", code="unknown-key")


# -- explaining -----------------------------------------------------------------------------------


class _Explained(NamedTuple):
    """Every tensor's size and number as expressions, and the models that confirm them."""

    stacks: list[Stack]
    known: int  # models used for fitting
    checked: int  # held-back models that the expressions give correctly
    only: Mapping[str, str]  # for arguments with a step: the failure at values off the step
    limit: str = ""  # the failure outside of the requested values; "" if there is none


def _explained(builds: Builds) -> _Explained:
    """Fit forms on some models and check them on others; models that refute a form join the fit."""
    known = builds.more(KNOWN)
    _refuse_too_few(builds)
    builds.more(HELD_BACK)
    builds.at(_other_points(builds), most=100)
    wrong, within = "", None
    for _ in range(ROUNDS):
        try:
            stacks = Forms(known).stacks()
            fails = _failures(builds, stacks)
            if not fails:
                builds.at(_points_near_steps(builds, stacks), most=NEAR_STEPS)
                fails = _failures(builds, stacks)
            if not fails:
                stepped = [argument for argument in _sizes(builds) if _step(builds, argument) > 1]
                only = {argument: why for argument in stepped if (why := _off_step(builds, stacks, argument))}
                return _Explained(stacks, len(known), _number(builds) - len(known), only)
            if not any(_is_within(built.point, builds) for built, _ in fails):
                within = _Explained(stacks, len(known), _number(builds) - len(known) - len(fails), {}, fails[0][1])
            new, wrong = [built for built, _ in fails], fails[0][1]
        except UnexplainedError as unexplained:
            wrong = str(unexplained)
            new = [*builds.built, *builds.elsewhere]
        grown = _joined(known, new)
        if len(grown) == len(known):
            grown = _joined(known, builds.more(2 * HELD_BACK))
        if len(grown) == len(known):
            break
        known = grown
    if within is None:
        raise BadInput(f"{builds.name} has a tensor without a formula: {wrong}", code="no-answer")
    return within


def _number(builds: Builds) -> int:
    return len(builds.built) + len(builds.elsewhere)


def _joined(known: list[Built], new: Sequence[Built]) -> list[Built]:
    """Add new models to the fit, doubling its size at most."""
    seen = {id(built) for built in known}
    return known + [built for built in new if id(built) not in seen][: max(KNOWN, len(known))]


def _failures(builds: Builds, stacks: Sequence[Stack]) -> list[tuple[Built, str]]:
    """Return the models that contradict the forms, each with the contradiction."""
    return [
        (built, why) for built in [*builds.built, *builds.elsewhere] if (why := difference(stacks, built)) is not None
    ]


def _is_within(point: Point, builds: Builds) -> bool:
    """Return whether a point is within the span of the requested values."""
    return all(values[0] <= point[argument] <= values[-1] for argument, values in builds.choices.items())


def _refuse_too_few(builds: Builds) -> None:
    tried = len(builds.built) + len(builds.refusals)
    if not builds.built:
        raise BadInput(f"{builds.name} fails at all {tried} points: {builds.refusals[0]}", code="user-code")
    for argument, choices in builds.choices.items():
        values = sorted({built.point[argument] for built in builds.built})
        if len(values) < (2 if isinstance(choices[0], bool) else FEWEST_VALUES):
            why = f"; {builds.refusals[0]}" if builds.refusals else ""
            raise BadInput(
                f"{builds.name} builds at {len(builds.built)} of {tried} points, with {argument} at"
                f" {' and '.join(map(str, values))} only: too few for a formula{why}",
                code="no-answer",
            )


# -- values beyond the requested ones -------------------------------------------------------------


def _sizes(builds: Builds) -> list[str]:
    """Return the arguments that are not switches; switches have both values already."""
    return [argument for argument, choices in builds.choices.items() if not isinstance(choices[0], bool)]


def _bases(builds: Builds) -> list[Point]:
    """Return points to change one argument of: the smallest model, and two larger ones.

    The smallest model is the most likely to build with another value.
    """
    by_size = sorted(builds.built, key=lambda built: built.total)
    picked = {id(built): built for built in (by_size[0], by_size[len(by_size) // 2], by_size[len(by_size) // 4])}
    return [built.point for built in picked.values()]


def _other_points(builds: Builds) -> Iterator[Point]:
    """Yield points with unrequested values of each argument, between and beyond.

    Then of several at once.
    """
    bases = _bases(builds)
    for argument in _sizes(builds):
        values = sorted({built.point[argument] for built in builds.built})
        for others in (between(values), beyond(values)):
            for value in others:
                if (value - values[0]) % _step(builds, argument):
                    continue
                if _built_with(builds, argument, others) == OTHER_VALUES:
                    break
                for point in with_value(bases, argument, value):
                    if _built_with(builds, argument, [value]):
                        break
                    yield point
    new = {argument: sorted(_elsewhere(builds, argument)) for argument in _sizes(builds)}
    for turn in range(2 * OTHER_VALUES):
        changed = {argument: values[turn % len(values)] for argument, values in new.items() if values}
        yield {**bases[turn % len(bases)], **changed}


def _step(builds: Builds, argument: str) -> int:
    """Return the step of a requested range: 64:512:64 does not ask for a width of 65."""
    choices = builds.choices[argument]
    return choices.step if isinstance(choices, range) else 1


def _built_with(builds: Builds, argument: str, values: Sequence[int]) -> int:
    """Count the values of an argument, among `values`, at which an extra model was built."""
    return len(_elsewhere(builds, argument).intersection(values))


def _elsewhere(builds: Builds, argument: str) -> set[int]:
    """Return the unrequested values of an argument at which models were built."""
    asked = builds.choices[argument]
    return {built.point[argument] for built in builds.elsewhere if built.point[argument] not in asked}


def _points_near_steps(builds: Builds, stacks: Sequence[Stack]) -> Iterator[Point]:
    spans = {}
    for argument in _sizes(builds):
        values = sorted({built.point[argument] for built in [*builds.built, *builds.elsewhere]})
        steps = dict.fromkeys((_step(builds, argument), lattice(values)))
        spans[argument] = [range(values[0], values[-1] + 1, step) for step in steps]
    bases = [*_bases(builds), *(built.point for built in builds.elsewhere[:: max(1, len(builds.elsewhere) // 6)])]
    return near_steps((form for stack in stacks for form in stack.forms), bases, spans)


def _off_step(builds: Builds, stacks: Sequence[Stack], argument: str) -> str | None:
    """Return how forms fail at values that a stepped range skips; None if they hold there too."""
    step, bases = _step(builds, argument), _bases(builds)
    values = sorted(builds.choices[argument])
    points = [point for value in off(values, step) for point in with_value(bases, argument, value)]
    forms = [form for stack in stacks for form in stack.forms]
    points += near_steps(forms, bases, {argument: [range(values[0], values[-1] + step)]})
    before = list(builds.elsewhere)
    new = builds.at(points, most=OFF_STEP)
    fails = [why for built in new if (why := difference(stacks, built)) is not None]
    if fails:
        builds.elsewhere[:] = before
    return fails[0] if fails else None


# -- the ledger -----------------------------------------------------------------------------------


def _assembled(builds: Builds, explained: _Explained) -> Ledger:
    """Return one ledger with one model's numbers, whose sizes carry their expressions."""
    where = _headline(builds, explained.stacks)
    everywhere = [where, *builds.built, *builds.elsewhere]
    return Ledger(
        tuple(_entry(stack, where, everywhere) for stack in explained.stacks),
        source=builds.name,
        kind="module",
        notes=tuple(_notes(builds, explained)),
        model=ModelDescription(symbols={argument: int(value) for argument, value in where.point.items()}),
    )


def _notes(builds: Builds, explained: _Explained) -> list[str]:
    """Return notes on how many models were fitted and checked, and where the formula holds."""
    used = {key for stack in explained.stacks for form in stack.forms for key in keys(form)}
    notes = [
        f"fitted to {explained.known} models built on the meta device, and confirmed on {explained.checked} more"
        if explained.checked
        else f"exact for all {explained.known} models that can be built there"
    ]
    if explained.limit:
        spans = [
            f"{argument} from {builds.choices[argument][0]} to {builds.choices[argument][-1]}"
            for argument in _sizes(builds)
        ]
        notes.append(f"only with {' and '.join(spans)}: {explained.limit}")
    for argument in builds.choices:
        if argument not in used:
            notes.append(f"{argument} changes no tensor")
        elif argument in _sizes(builds) and not explained.limit:
            notes += _domain(builds, argument, explained.only.get(argument))
    if builds.refusals:
        tried = len(builds.built) + len(builds.refusals)
        notes.append(f"{len(builds.refusals)} of {tried} points were skipped: {builds.refusals[0]}")
    return notes


def _domain(builds: Builds, argument: str, why: str | None) -> list[str]:
    """Return a note on the values of an argument with which the factory never built."""
    built = sorted({model.point[argument] for model in [*builds.built, *builds.elsewhere]})
    if not _elsewhere(builds, argument):
        some = ", ".join(map(str, built[:8])) + (f", … {built[-1]}" if len(built) > 8 else "")
        return [f"only at these values of {argument}: {some}; the factory failed at all other values tried"]
    step = lattice(built)
    if step > 1:
        kind = f"multiples of {step}" if built[0] % step == 0 else f"multiples of {step} plus {built[0] % step}"
        return [f"only at {kind} of {argument}: {why or 'the factory failed at all other values tried'}"]
    return []


def _headline(builds: Builds, stacks: Sequence[Stack]) -> Built:
    """Return the model whose numbers the ledger shows: at the factory's defaults, or the largest.

    Models that have every kind of tensor with a distinct shape come first; switches may leave none.
    """
    whole = [built for built in builds.built if all(stack.of(built) for stack in stacks)]
    if not whole and all(stack.there == 1 for stack in stacks):
        raise BadInput(
            f"no model of {builds.name} has all tensors of the others: vary over fewer values",
            code="no-answer",
        )
    return max(whole or builds.built, key=lambda built: (built.point == builds.usual, built.total))


def _entry(stack: Stack, where: Built, everywhere: Sequence[Built]) -> Entry:
    """Return a stack's entry with one model's numbers.

    If that model has none, with the first that does.
    """
    alike, point = next((found, built.point) for built in everywhere if (found := stack.of(built)))
    shape = tuple(_dim(form, point) for form in stack.shape)
    name, *rest = stack.template.split("{}")
    axes = []
    if stack.there != 1:
        axes.append(Axis(0, _dim(stack.there, where.point)))
    for numbers, length, text in zip(alike.numbers, stack.lengths, rest, strict=True):
        name += (str(numbers[0]) if length is None else "{}") + text
        if length is not None:
            axes.append(Axis(numbers[0], _dim(length, where.point)))
    return alike.first._replace(
        name=name,
        shape=shape,
        storage=stack.tied or name,
        identity="",
        unique=0 if stack.tied else int(math.prod(shape)),
        active=None,
        axes=tuple(axes),
    )


def _dim(form: Expression, point: Point) -> int:
    value = int(evaluate(form, point))
    return value if isinstance(form, int) else Dim(value, form)
