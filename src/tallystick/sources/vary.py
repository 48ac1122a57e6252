"""A factory called with many values of its arguments becomes one ledger, whose sizes are expressions of them.

Nobody described the model. Every size and every number of copies is put as an expression of what was varied (`fit`),
and the whole must then give each tensor of every model that was built, of those too that were held back. What cannot
be explained is named, never guessed.
"""

from __future__ import annotations

import inspect
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tallystick.dims import Dim, Expression, atoms, evaluate, keys
from tallystick.errors import BadInput, nearest, quoted, shown
from tallystick.ledger import Axis, Entry, Ledger
from tallystick.sources import FACTORY
from tallystick.sources.builds import Builds, Built, Kind, stated
from tallystick.sources.factory import find
from tallystick.sources.fit import fit

FEWEST_VALUES = 3  # two points lie on every line: a third is what checks it
LARGEST = 2**63 - 2
KNOWN, HELD_BACK = 25, 15  # models from which forms are found, and models on which they are checked, at first
ROUNDS = 4  # of finding forms, each with the models that proved the last ones wrong


def ledger_by_varying(source: str | Callable[..., Any], vary: Mapping[str, Any], fixed: Mapping[str, Any]) -> Ledger:
    """The ledger of what a factory builds, its sizes as expressions of the varied arguments.

    Args:
        source: ``"package.module:factory"``, or the factory itself.
        vary: for each argument the values that it takes: ``"64:256"``, ``"64:256:32"``, ``"64,128,256"``, a pair
            ``(64, 256)`` of the lowest and the highest, a `range` or a list.
        fixed: arguments that are the same in every call; all others keep the factory's defaults.

    Raises:
        BadInput: when there is no such argument, when too few points build, or when no formula is found for a tensor.
    """
    if isinstance(source, str):
        if not FACTORY.fullmatch(source):
            raise BadInput(
                f"{quoted(source)} has no arguments to vary: name package.module:factory, a function that returns an"
                " nn.Module (the formula of a config or a preset is in all of its keys already)"
            )
        name, target = source, find(source)
    elif callable(source):
        name, target = getattr(source, "__qualname__", type(source).__name__), source
    else:
        raise BadInput(f"cannot vary {shown(source)}: expected package.module:factory, or a function")
    if not vary:
        raise BadInput(f"{name}: no argument to vary was named")
    choices = {argument: _choices(argument, given) for argument, given in vary.items()}
    defaults = _refuse_arguments(name, target, choices, fixed)
    builds = Builds(name, target, choices, fixed, {argument: defaults.get(argument) for argument in choices})
    stacks, checked = _explained(builds)
    return _assembled(builds, stacks, checked)


# -- what was asked for ---------------------------------------------------------------------------


def _choices(argument: str, given: Any) -> Sequence[int]:
    """The values of one argument, from the words of a command line or from Python."""
    values = _parsed(given) if isinstance(given, str) else given
    if isinstance(given, tuple) and len(given) == 2 and all(isinstance(end, int) for end in given):
        values = range(given[0], given[1] + 1)
    if isinstance(values, list | tuple) and all(type(value) is int for value in values):
        values = sorted(set(values))
    elif not isinstance(values, range):
        raise BadInput(
            f"{argument} cannot be varied over {quoted(given)}: expected a range 64:256, with a step 64:256:32, or"
            " values 64,128,256"
        )
    if values and (min(values[0], values[-1]) < 0 or max(values[0], values[-1]) > LARGEST):
        raise BadInput(f"{argument} is varied over {quoted(given)}: sizes are integers of 0 or more, below 2^63")
    if len(values) < FEWEST_VALUES:
        raise BadInput(
            f"{argument} is varied over {quoted(given)}, which holds {len(values)} of the {FEWEST_VALUES} values that a"
            " formula needs at least"
        )
    return values


def _parsed(text: str) -> range | list[int] | None:
    """`64:256` and `64:256:32` hold their last value, as people mean it; None is neither a range nor a list."""
    ends = re.fullmatch(r"(\d{1,20}):(\d{1,20})(?::(\d{1,20}))?", text)
    if ends:
        step = int(ends[3] or 1)
        return range(int(ends[1]), int(ends[2]) + 1, step) if step else None
    if re.fullmatch(r"\d{1,20}(,\d{1,20})*", text):
        return [int(value) for value in text.split(",")]
    return None


def _refuse_arguments(
    name: str, target: Callable[..., Any], choices: Mapping[str, Any], fixed: Mapping[str, Any]
) -> dict[str, Any]:
    """Refuse an argument that the factory does not have, or that is both varied and set; returns its defaults."""
    for argument in choices:
        if argument in fixed:
            raise BadInput(f"{argument} is both varied and set: keep one")
    try:
        parameters = inspect.signature(target).parameters
    except (TypeError, ValueError):  # what is no function is refused when it is called
        return {}
    if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        for argument in (*choices, *fixed):
            if argument not in parameters:
                raise BadInput(f"{name} takes no argument {quoted(argument)}{nearest(argument, parameters)}")
    return {argument: parameter.default for argument, parameter in parameters.items()}


# -- explaining -----------------------------------------------------------------------------------


class _Stack(NamedTuple):
    """Tensors that are alike in every model: how many they are and how large, as expressions."""

    template: str
    number: int  # among the kinds of its template, in the order in which the model prints them
    tied: str  # the template of what they are tied to, "" for none
    shape: tuple[Expression, ...]
    lengths: tuple[
        Expression | None, ...
    ]  # how many numbers stand at each place of the name; None: always the same one


class _UnexplainedError(Exception):
    """What no form was found for."""


def _explained(builds: Builds) -> tuple[list[_Stack], int]:
    """Every tensor's size and number as expressions that hold in every model, and how many models were held back.

    Forms are found in some models and checked on others. Those that prove one wrong help to find the next.
    """
    known = builds.more(KNOWN)
    _refuse_too_few(builds)
    held = builds.more(HELD_BACK)
    wrong = None
    for _ in range(ROUNDS):
        try:
            stacks = _Forms(known).stacks()
            wrong = next((why for built in builds.built if (why := _difference(stacks, built))), None)
            if wrong is None:
                return stacks, len(held)
        except _UnexplainedError as unexplained:
            wrong = str(unexplained)
        if not held:
            break
        known, held = known + held, builds.more(2 * HELD_BACK)
    raise BadInput(f"{builds.name} has a tensor that no formula was found for: {wrong}")


def _refuse_too_few(builds: Builds) -> None:
    tried = len(builds.built) + len(builds.refusals)
    if not builds.built:
        raise BadInput(f"{builds.name} builds at none of {tried} points: {builds.refusals[0]}")
    for argument in builds.choices:
        values = sorted({built.point[argument] for built in builds.built})
        if len(values) < FEWEST_VALUES:
            why = f"; {builds.refusals[0]}" if builds.refusals else ""
            raise BadInput(
                f"{builds.name} builds at {len(builds.built)} of {tried} points, with {argument} at"
                f" {' and '.join(map(str, values))} alone: too few for a formula{why}"
            )


class _Forms:
    """The forms of all sizes and numbers in some models; what is equal everywhere is looked at once."""

    def __init__(self, models: Sequence[Built]) -> None:
        self._models = models
        self._roundings: list[Expression] = []
        self._found: dict[tuple[tuple[int, ...], tuple[int, ...]], Expression | None] = {}

    def stacks(self) -> list[_Stack]:
        """What all tensors are. Raises `_UnexplainedError` for the first that nothing fits."""
        templates = list(dict.fromkeys(template for built in self._models for template in built.alike))
        try:
            return self._of_all(templates)
        except _UnexplainedError:
            if not self._roundings:
                raise
        # A rounding that was found late may be a part of what came before it.
        self._found = {key: form for key, form in self._found.items() if form is not None}
        return self._of_all(templates)

    def _of_all(self, templates: Sequence[str]) -> list[_Stack]:
        stacks: list[_Stack] = []
        failures: list[_UnexplainedError] = []
        for template in templates:
            try:
                stacks += self._of(template)
            except _UnexplainedError as unexplained:
                failures.append(unexplained)
        if failures:
            raise failures[0]
        return stacks

    def _of(self, template: str) -> Iterator[_Stack]:
        """The tensors of one template, in the models where no two kinds of them happen to have one shape."""
        name = _shown(template)
        most = max(len(built.alike.get(template, ())) for built in self._models)
        models = [built for built in self._models if len(built.alike.get(template, ())) == most]
        # Where there are none, their number is 0; of which kind there is none, is told where there is but one.
        absent = [built for built in self._models if most == 1 and template not in built.alike]
        for number in range(most):
            alike = [built.alike[template][number] for built in models]
            ties = {(one.kind[0], len(one.kind[1])) for one in alike}
            if len(ties) > 1:
                raise _UnexplainedError(f"{name} has not everywhere the same dimensions and the same ties")
            sizes = zip(*(one.kind[1] for one in alike), strict=True)
            shape = [self._form(models, size, f"size {place} of {name}") for place, size in enumerate(sizes, 1)]
            counts = [[len(numbers) for numbers in one.numbers] for one in alike]
            if any(math.prod(count) != one.copies for count, one in zip(counts, alike, strict=True)):
                # The numbers fill no grid, as where every layer has its own experts: only how many there are is told.
                counts = [[one.copies, *[1] * (len(one.numbers) - 1)] for one in alike]
            lengths: list[Expression | None] = []
            for place, length in enumerate(zip(*counts, strict=True)):
                if len({one.numbers[place] for one in alike}) == 1 and set(length) == {1}:
                    lengths.append(None)
                    continue
                none = absent if not any(lengths) else []  # of nothing, it is the first number that is 0
                lengths.append(self._form(models + none, [*length, *[0] * len(none)], f"the number of {name}"))
            yield _Stack(template, number, alike[0].kind[0], tuple(shape), tuple(lengths))

    def _form(self, models: Sequence[Built], values: Sequence[int], what: str) -> Expression:
        key = (tuple(map(id, models)), tuple(values))
        if key not in self._found:
            self._found[key] = fit([built.point for built in models], values, self._roundings)
        form = self._found[key]
        if form is None:
            seen = {value: built.point for built, value in zip(models, values, strict=True)}
            some = "; ".join(f"{value} with {stated(seen[value])}" for value in sorted(seen)[:3])
            raise _UnexplainedError(f"{what} is {some}")
        self._roundings += [a for a in atoms(form) if isinstance(a, tuple) and a not in self._roundings]
        return form


def _difference(stacks: Sequence[_Stack], built: Built) -> str | None:
    """What forms say wrongly of a model; None where they give each of its tensors."""
    told: dict[str, Counter[Kind]] = {}
    for stack in stacks:
        try:
            copies = math.prod(evaluate(length, built.point) for length in stack.lengths if length is not None)
            shape = tuple(evaluate(size, built.point) for size in stack.shape)
        except ZeroDivisionError:
            return f"the shape of {_shown(stack.template)} divides by 0 with {stated(built.point)}"
        if copies:  # a fraction is neither a size nor a number of the model, and so found
            told.setdefault(stack.template, Counter())[stack.tied, shape] += copies  # type: ignore[assignment]
    tensors = built.tensors
    for template in {**tensors, **told}:
        here, there = tensors.get(template, Counter()), told.get(template, Counter())
        if here != there:
            return (
                f"{_shown(template)} with {stated(built.point)} is {_listed(here)},"
                f" where what fits others gives {_listed(there)}"
            )
    return None


def _shown(template: str) -> str:
    return template.replace("{}", "*")


def _listed(kinds: Counter[Kind]) -> str:
    """How many tensors of which shapes."""
    some = [f"{count} of shape {'×'.join(map(str, shape)) or '()'}" for (_, shape), count in kinds.items()]
    return (", ".join(some[:3]) + (" and more" if len(some) > 3 else "")) or "absent"


# -- the ledger -----------------------------------------------------------------------------------


def _assembled(builds: Builds, stacks: Sequence[_Stack], checked: int) -> Ledger:
    """One ledger, its numbers those of one model, its sizes aware of their expressions."""
    where = _headline(builds, stacks)
    forms = [form for stack in stacks for form in (*stack.shape, *stack.lengths) if form is not None]
    used = {key for form in forms for key in keys(form)}
    found = len(builds.built) - checked
    notes = [
        f"found in {found} models built on the meta device, and true of {checked} more that were held back"
        if checked
        else f"true of all {found} models that can be built there"
    ]
    notes += [f"{argument} changes no tensor" for argument in builds.choices if argument not in used]
    if builds.refusals:
        notes.append(
            f"{len(builds.refusals)} of {found + checked + len(builds.refusals)} points were refused: {builds.refusals[0]}"
        )
    return Ledger(
        [_entry(stack, where) for stack in stacks],
        source=builds.name,
        kind="module",
        symbols=where.point,
        notes=notes,
    )


def _headline(builds: Builds, stacks: Sequence[_Stack]) -> Built:
    """The model whose numbers stand beside the formula: that of the factory's defaults, or else the largest.

    It must have every kind of tensor apart from every other, so that each has an entry.
    """
    kinds = Counter(stack.template for stack in stacks)
    whole = [built for built in builds.built if all(len(built.alike.get(t, ())) == n for t, n in kinds.items())]
    if not whole:
        raise BadInput(f"{builds.name} builds no model that has all tensors of the others: vary over fewer values")
    return max(whole, key=lambda built: (built.point == builds.usual, built.total))


def _entry(stack: _Stack, where: Built) -> Entry:
    alike = where.alike[stack.template][stack.number]
    shape = tuple(_dim(form, where) for form in stack.shape)
    name, *rest = stack.template.split("{}")
    axes = []
    for numbers, length, text in zip(alike.numbers, stack.lengths, rest, strict=True):
        name += (str(numbers[0]) if length is None else "{}") + text
        if length is not None:
            axes.append(Axis(numbers[0], _dim(length, where)))
    return alike.first._replace(
        name=name,
        shape=shape,
        storage=stack.tied or name,
        identity="",
        unique=0 if stack.tied else int(math.prod(shape)),
        active=None,
        axes=tuple(axes),
    )


def _dim(form: Expression, where: Built) -> int:
    value = int(evaluate(form, where.point))
    return value if isinstance(form, int) else Dim(value, form)
