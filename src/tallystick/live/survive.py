"""Which operations keep embedding and head one Parameter: each is run on a small tied model, and the model looked at."""

from __future__ import annotations

import io
import logging
import re
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import asdict, dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tallystick.errors import BadInput
from tallystick.live.advice import remedy
from tallystick.live.operations import OPERATIONS, Desk, Operation, tied_model
from tallystick.live.relation import WORSE, relation_of, worst
from tallystick.live.retie import retie
from tallystick.live.watch import _prefix
from tallystick.sources.module import ledger_from_module
from tallystick.sources.places import places_of, stand_ins

if TYPE_CHECKING:
    from torch import nn

EMBEDDING, HEAD = "transformer.wte.weight", "lm_head.weight"
LIBRARIES = ("torch", "transformers", "safetensors", "accelerate", "peft", "torchao")  # those whose versions matter
CODES = {  # of docs/problems
    "aliased": "aliased-parameters",
    "copied": "copied-parameters",
    "untied": "untied-head",
    "unknown": "untied-head",  # in separate memory for certain
}

# The tokens that the probe reads, and those whose logits are its loss: each use has rows of its own in the gradient.
READ, SCORED = (1, 2, 3), (11, 12, 13)
ABOUT_TIES = re.compile(r"\b(un)?(tie|tied|ties|tying)\b|_tying|tie_|shared? (memory|param)", re.IGNORECASE)
MOST_SAID = 200  # characters


@dataclass(frozen=True)
class Survived:
    """What one operation did to embedding and head."""

    operation: str
    library: str
    what: str
    outcome: str  # kept | lost | refused | not installed
    before: str = ""  # the relations of the word list
    after: str = ""
    parameters: int | None = None  # unique ones more than before
    values: str = ""  # of the embedding: same | other, where there are any
    gradients: str = ""  # which tensors a backward through both uses reaches
    said: str = ""  # by the library, about ties
    code: str = ""  # of docs/problems, where the tie was lost
    remedy: str = ""
    mended: str = ""  # the relation after the remedy
    mended_gradients: str = ""


@dataclass(frozen=True)
class Survival:
    """All operations, and the versions that they were run with."""

    versions: dict[str, str]
    rows: tuple[Survived, ...]

    def to_dict(self) -> dict[str, Any]:
        """The JSON of ``tallystick survive``: keys are a contract, added to and never renamed."""
        out = asdict(self)
        out["rows"] = [{key: None if value == "" else value for key, value in row.items()} for row in out["rows"]]
        return out


def survive(operations: Sequence[Operation] | None = None) -> Survival:
    """Run operations, by default all, on a small tied GPT-2.

    Nothing is left behind: files go to a folder that is removed, random numbers and loggers are as before.

    Raises:
        BadInput: where torch or transformers, of which the model is made, is not installed.
    """
    for library in ("torch", "transformers"):
        if find_spec(library) is None:
            raise BadInput(f"the operations need {library}: pip install 'tallystick[survive]'")
    rows = [_row(operation) for operation in (OPERATIONS if operations is None else operations)]
    versions = {library: found for library in LIBRARIES if (found := _version(library))}
    return Survival(versions, tuple(_with_instead(rows)))


def _version(library: str) -> str | None:
    try:
        return version(library).partition("+")[0]  # 2.13.0+cpu is 2.13.0, built for a machine without a GPU
    except PackageNotFoundError:
        return None


# -- one operation --------------------------------------------------------------------------------


def _row(operation: Operation) -> Survived:
    import torch

    row = Survived(operation.name, operation.library, operation.what, "not installed")
    if find_spec(operation.library) is None:
        return row
    with ExitStack() as stack:
        desk = Desk(Path(stack.enter_context(tempfile.TemporaryDirectory())), stack.enter_context(ExitStack()))
        stack.enter_context(torch.random.fork_rng(devices=[]))
        said = stack.enter_context(_listening())
        torch.manual_seed(0)
        row = _run(operation, row, desk)
    # What the library refused with, then what it warned of.
    said = [text for text in (row.said, *said) if text]
    return replace(row, said=_first_sentence(said[0]) if said else "")


def _run(operation: Operation, row: Survived, desk: Desk) -> Survived:
    model = tied_model()
    names, size = list(places_of(model)), ledger_from_module(model).total
    row = replace(row, before=_look(model, names)[1])
    try:
        model = operation.run(model, desk)
    except Exception as error:  # a refusal may be of any kind, and is what we want to see
        advice = f"instead: {operation.instead}" if operation.instead else ""
        return replace(row, outcome="refused", said=f"{type(error).__name__}: {error}", remedy=advice)
    pair, after = _look(model, names)
    if after == "gone":
        return replace(row, outcome="lost", after=after)
    gradients, refusal = _gradients(model, pair)
    row = replace(
        row,
        outcome="lost" if after in WORSE.get(row.before, ()) else "kept",
        after=after,
        parameters=ledger_from_module(model).total - size,
        values=_values(model, pair[0]),
        gradients=gradients,
        said=refusal,
    )
    if row.outcome == "kept":
        return row
    row = replace(row, code=CODES.get(after, ""), remedy=operation.instead and f"instead: {operation.instead}")
    return row if operation.instead else _mended(row, model, names, pair)


def _look(model: nn.Module, names: Sequence[str]) -> tuple[tuple[str, str], str]:
    """Under which names embedding and head are now, and their relation."""
    places = places_of(model)
    taken, put = _prefix(names, places)
    pairs = stand_ins(places, *(put + name.removeprefix(taken) for name in (EMBEDDING, HEAD)))
    if not pairs:
        return (EMBEDDING, HEAD), "gone"
    relations = {pair: relation_of(places[pair[0]], places[pair[1]]) for pair in pairs}
    found = worst(list(relations.values()))
    return next(pair for pair in pairs if relations[pair] == found), found


def _mended(row: Survived, model: nn.Module, names: Sequence[str], pair: tuple[str, str]) -> Survived:
    """The row with what is to be done, once that was done."""
    advice = remedy(model, places_of(model), pair, row.after)
    told = pair if f'"{pair[0]}", ' in advice else ()
    retie(model, *told, keep=pair[0] if "keep=" in advice else None)
    pair, relation = _look(model, names)
    return replace(row, remedy=advice, mended=relation, mended_gradients=_gradients(model, pair)[0])


def _with_instead(rows: Sequence[Survived]) -> Iterator[Survived]:
    """Where the remedy is to do another thing, what came of that."""
    others = {f"instead: {row.operation}": row for row in rows}
    for row in rows:
        other = others.get(row.remedy)
        yield replace(row, mended=other.after, mended_gradients=other.gradients) if other else row


def _values(model: nn.Module, name: str) -> str:
    """Whether the embedding's values are what they were, in the dtype that they have now; added rows are not asked."""
    import torch

    tensor = places_of(model)[name].tensor
    if tensor.is_meta:
        return ""
    now, before = _whole(tensor.detach()), tied_model().get_parameter(EMBEDDING).detach()
    rows = min(len(now), len(before))
    return "same" if torch.equal(now[:rows], before[:rows].to(now.dtype)) else "other"


def _whole(tensor: Any) -> Any:
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor  # of a sharded one


# -- gradients ------------------------------------------------------------------------------------


def _gradients(model: nn.Module, pair: tuple[str, str]) -> tuple[str, str]:
    """What one backward through both uses reaches, and what was said where it did not run.

    The loss is made of the logits of tokens that are not read. So the embedding's use gives a gradient to the rows that
    are read, the head's use to those that are scored, and the sum of the two has both and no others.
    """
    import torch

    places = places_of(model)
    embedding, head = (places[name].tensor for name in pair)
    if embedding.is_meta or head.is_meta:
        return "no values", ""
    if not (embedding.requires_grad or head.requires_grad):
        return "frozen", ""
    model.zero_grad()
    try:
        answer = model(torch.tensor([READ]))
        answer.logits[..., list(SCORED)].float().sum().backward()
    except Exception as error:  # some refuse only here
        return "refused", f"{type(error).__name__}: {error}"
    used, scored = _rows(embedding), _rows(head)
    if embedding is head:
        return "one tensor" if used == {*READ, *SCORED} else "one tensor, not all of it", ""
    both = used == set(READ) and scored == set(SCORED)
    return "two tensors" if both else "embedding alone" if used else "head alone" if scored else "none", ""


def _rows(parameter: Any) -> set[int]:
    """The rows of the vocabulary that got a gradient."""
    gradient = parameter.grad
    if gradient is None:
        return set()
    return set(_whole(gradient).abs().sum(1).nonzero().flatten().tolist())


# -- what libraries say ---------------------------------------------------------------------------


@contextmanager
def _listening() -> Iterator[list[str]]:
    """What is warned and logged about ties inside; nothing is printed, and the loggers are put back."""
    from transformers.utils import logging as its

    getattr(its.warning_once, "cache_clear", lambda: None)()  # so that what it said before does not matter
    heard: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: heard.append(record.getMessage())  # type: ignore[method-assign]
    loggers = [logger for logger in logging.root.manager.loggerDict.values() if isinstance(logger, logging.Logger)]
    before = [(logger, logger.handlers) for logger in (logging.root, *loggers) if logger.handlers]
    told: list[str] = []
    verbosity = its.get_verbosity()
    try:
        its.set_verbosity_warning()  # whatever it was told to keep to itself
        for logger, _ in before:
            logger.handlers = [handler]
        logging.root.handlers = [handler]
        with (
            warnings.catch_warnings(record=True) as warned,
            redirect_stdout(io.StringIO()),
            redirect_stderr(io.StringIO()),
        ):
            warnings.simplefilter("always")
            yield told
    finally:
        its.set_verbosity(verbosity)
        logging.root.handlers = []
        for logger, handlers in before:
            logger.handlers = handlers
        texts = [*heard, *(str(one.message) for one in warned)]
        told.extend(text for text in dict.fromkeys(texts) if ABOUT_TIES.search(text))


def _first_sentence(text: str) -> str:
    """One line, without what changes from run to run.

    >>> _first_sentence("ValueError: two  values: [{'b', 'a'}]. And more")
    'ValueError: two values'
    """
    text = re.sub(r"\[\{.*?\}\]", "", text)  # a set of names, in any order
    line = re.sub(r"\x1b\[[0-9;]*m", "", " ".join(text.split()))
    line = re.split(r"[.!] (?=[A-Z])", line)[0].rstrip(".: ")
    return line if len(line) <= MOST_SAID else line[: MOST_SAID - 1] + "…"
