"""Run library operations on a small tied model and report which of them keep the tie."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, fields, replace
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tallystick.arguments import named
from tallystick.core.display import Displayed
from tallystick.errors import BadInput
from tallystick.extras import needed
from tallystick.live import probe
from tallystick.live.captured_warnings import first_sentence, listening
from tallystick.live.operations import OPERATIONS, NotApplicable, Operation, Workspace
from tallystick.live.ranks import Ranks, RanksFailed, ranks
from tallystick.live.relation import WORSE
from tallystick.live.retie import retie
from tallystick.live.subjects import SUBJECTS, Subject, subject_of
from tallystick.live.tie_problems import remedy
from tallystick.sources.torch_module.module import ledger_from_module
from tallystick.sources.torch_module.named_parameters import places_of

if TYPE_CHECKING:
    from torch import nn

LIBRARIES = ("torch", "transformers", "safetensors", "accelerate", "peft", "torchao")  # whose versions are reported
CODES = {  # page of docs/problems by relation
    "aliased": "aliased-parameters",
    "copied": "copied-parameters",
    "untied": "untied-head",
    "unknown": "untied-head",  # separate memory for certain
}
UNPROBED = "cannot tell where gradients go: a forward and backward pass on three tokens gave {}"


@dataclass(frozen=True)
class Survived:
    """What one operation did to embedding and head."""

    operation: str
    library: str
    what: str
    outcome: str  # kept | lost | refused | not applicable | not installed | failed (no result)
    before: str = ""  # relations as in `live.relation`
    after: str = ""
    parameters: int | None = None  # unique parameters added
    values: str = ""  # same | other: the embedding's values, if it has any
    gradients: str = ""  # which tensors a backward pass through both uses reaches
    said: str = ""  # the library's message about ties, or why there is no result
    code: str = ""  # page of docs/problems, if the tie was lost
    remedy: str = ""
    mended: str = ""  # relation after the remedy
    mended_gradients: str = ""


@dataclass(frozen=True, repr=False)
class Survival(Displayed):
    """The results of all operations, with the versions of the libraries."""

    versions: dict[str, str]
    rows: tuple[Survived, ...]
    source: str = ""  # given by the user, or ""
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON of ``tallystick survive``: keys are only ever added, never renamed."""
        out = asdict(self)
        out["rows"] = [_to_json(row) for row in self.rows]
        out["source"] = self.source or None
        return out


def _to_json(row: Survived) -> dict[str, Any]:
    return {key: None if value == "" else value for key, value in asdict(row).items()}


def _from_json(row: Mapping[str, Any]) -> Survived:
    texts = {key: "" if value is None else value for key, value in row.items()}
    return Survived(**{**texts, "parameters": row["parameters"]})


@named
def survive(
    source: str | None = None,
    settings: Mapping[str, Any] | None = None,
    *,
    operations: Sequence[Operation] | None = None,
) -> Survival:
    """Run operations, by default all, on a small tied model.

    Files go to temporary folders; random state and loggers are restored.

    Args:
        source: a preset, a config or a folder with one; a small model of its type is built.
            Or ``package.module:factory``, whose model is used unchanged. The default is a
            GPT-2, or a Llama for operations that need its kinds of layers.
        settings: config keys that override the source's, or arguments of the factory.
        operations: the operations to run.

    Returns:
        A row for each operation: the relation of embedding and head before and after it, and
        the remedy.

    Raises:
        BadInput: if torch or transformers is not installed, or the model ties nothing.
    """
    for library in ("torch", "transformers"):
        needed(library, "survive", "survive")
    chosen = list(OPERATIONS if operations is None else operations)
    subject = None if source is None else subject_of(source, settings or {})
    notes = (UNPROBED.format(subject.unprobed),) if subject and subject.unprobed else ()
    alone = [operation for operation in chosen if operation.processes == 1]
    together = [operation for operation in chosen if operation.processes > 1]
    with ExitStack() as stack:
        if together:  # started first: the ranks run in parallel with the rest
            names, count = [operation.name for operation in together], together[0].processes
            started = ranks(count, f"{__name__}:rows_of_rank", [names, source, dict(settings or {})])
            running = stack.enter_context(started)
        rows = [_row(operation, subject) for operation in alone]
        rows += _agreed(together, running) if together else []
    order = {operation.name: place for place, operation in enumerate(chosen)}
    rows.sort(key=lambda row: order[row.operation])
    versions = {library: found for library in LIBRARIES if (found := _version(library))}
    return Survival(versions, tuple(_with_instead(rows)), source or "", notes)


def _version(library: str) -> str | None:
    try:
        return version(library).partition("+")[0]  # 2.13.0+cpu is 2.13.0, built for a machine without a GPU
    except PackageNotFoundError:
        return None


# -- one operation --------------------------------------------------------------------------------


def _row(operation: Operation, subject: Subject | None) -> Survived:
    """Run an operation on the user's model, or on the operation's default model."""
    import torch

    row = _empty(operation)
    if find_spec(operation.library) is None:
        return row
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        workspace = Workspace(folder, stack.enter_context(ExitStack()), subject or SUBJECTS[operation.on])
        stack.enter_context(torch.random.fork_rng(devices=[]))
        said = stack.enter_context(listening())
        torch.manual_seed(0)
        try:
            row = _run(operation, row, workspace)
        except BadInput as error:  # the resulting model cannot be counted
            row = replace(row, outcome="failed", said=str(error))
    # The library's error comes first, its warnings after.
    said = [text for text in (row.said, *said) if text]
    return replace(row, said=first_sentence(said[0]) if said else "")


def _empty(operation: Operation) -> Survived:
    return Survived(operation.name, operation.library, operation.what, "not installed")


def _run(operation: Operation, row: Survived, workspace: Workspace) -> Survived:
    model, subject = workspace.fresh(), workspace.subject
    names, size = list(places_of(model)), ledger_from_module(model).total

    def look(model: nn.Module) -> probe.Seen:
        return probe.look(model, names, subject.embedding, subject.head)

    row = replace(row, before=look(model).relation)
    try:
        model = operation.run(model, workspace)
    except NotApplicable as error:
        return replace(row, outcome="not applicable", said=str(error))
    except Exception as error:  # libraries refuse with any exception; it is the result to report
        advice = f"instead: {operation.instead}" if operation.instead else ""
        return replace(row, outcome="refused", said=f"{type(error).__name__}: {error}", remedy=advice)
    return _after(operation, row, model, workspace, look, size)


def _after(
    operation: Operation,
    row: Survived,
    model: nn.Module,
    workspace: Workspace,
    look: Callable[[nn.Module], probe.Seen],
    size: int,
) -> Survived:
    """Inspect the model after the operation, then apply and check the remedy."""
    subject = workspace.subject
    embedding, head, after = look(model)
    if after == "gone":
        return replace(row, outcome="lost", after=after)
    gradients, refusal = _gradients(model, embedding, head, subject)
    row = replace(
        row,
        outcome="lost" if after in WORSE.get(row.before, ()) else "kept",
        after=after,
        parameters=ledger_from_module(model).total - size,
        values=probe.values(model, embedding, workspace.fresh().get_parameter(subject.embedding)),
        gradients=gradients,
        said=refusal,
    )
    if row.outcome == "kept":
        return row
    row = replace(row, code=CODES.get(after, ""))
    if operation.instead:
        return replace(row, remedy=f"instead: {operation.instead}")
    advice = remedy(model, places_of(model), (embedding, head), after)
    try:
        _follow(advice, model, embedding, head)
    except BadInput as error:
        return replace(row, remedy=advice, mended="refused", said=row.said or str(error))
    seen = look(model)
    reached, _ = _gradients(model, seen.embedding, seen.head, subject)
    return replace(row, remedy=advice, mended=seen.relation, mended_gradients=reached)


def _gradients(model: nn.Module, embedding: str, head: str, subject: Subject) -> tuple[str, str]:
    return ("", "") if subject.unprobed else probe.gradients(model, embedding, head)


def _follow(advice: str, model: nn.Module, embedding: str, head: str) -> None:
    """Apply the call that `remedy` advised."""
    names = (embedding, head) if f'"{embedding}", ' in advice else ()
    retie(model, *names, keep=embedding if "keep=" in advice else None)


def _with_instead(rows: Sequence[Survived]) -> Iterator[Survived]:
    """Fill in results of remedies that are another operation; drop those that lose the tie too."""
    others = {f"instead: {row.operation}": row for row in rows}
    for row in rows:
        other = others.get(row.remedy)
        if other is None:
            yield row
        elif other.outcome == "kept":
            yield replace(row, mended=other.after, mended_gradients=other.gradients)
        else:
            yield replace(row, remedy="")


# -- in several processes -------------------------------------------------------------------------


def rows_of_rank(names: Sequence[str], source: str | None, settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return one rank's rows of operations that all ranks run together."""
    subject = None if source is None else subject_of(source, settings)
    known = {operation.name: operation for operation in OPERATIONS}
    return [_to_json(_row(known[name], subject)) for name in names]


def _agreed(operations: Sequence[Operation], running: Ranks) -> list[Survived]:
    """Return the rows on which all ranks agree; others failed, as do all if a rank crashed."""
    try:
        results = running.results()
    except RanksFailed as error:
        return [replace(_empty(operation), outcome="failed", said=str(error)) for operation in operations]
    return [
        _one_of([_from_json(row) for row in seen], operation)
        for operation, seen in zip(operations, zip(*results, strict=True), strict=True)
    ]


def _one_of(rows: Sequence[Survived], operation: Operation) -> Survived:
    first = rows[0]
    for rank, row in enumerate(rows):
        for field in fields(row):
            mine, its = getattr(first, field.name), getattr(row, field.name)
            if mine != its:
                said = (
                    f"the ranks disagree on {field.name}: {mine or 'nothing'} on rank 0, {its or 'nothing'} on rank"
                    f" {rank}"
                )
                return replace(_empty(operation), outcome="failed", said=said)
    return first
