"""Find tied, aliased, copied and untied tensors, and give a verdict on a model's ties."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

from tallystick.answers.ties.remedies import remedy_of
from tallystick.core.display import Displayed
from tallystick.core.dtypes import size_in_bytes
from tallystick.core.evidence import ROUNDED, Compared, worst
from tallystick.core.ledger import Ledger

_SILENT = "no tied weights, and nothing says whether any were expected"


@dataclass(frozen=True)
class Group:
    """Names that share one tensor, or should share one.

    >>> import tallystick
    >>> group = tallystick.ties("gpt2").groups[0]
    >>> group.relation, group.expected, group.parameters == 50_257 * 768
    ('tied', True, True)
    """

    names: tuple[str, ...]
    relation: str  # tied | aliased | copied | untied | unknown
    expected: bool | None  # whether config or model ties them; None if neither says
    parameters: int  # elements that tying saves, or would save
    wasted_bytes: int  # bytes of duplicate values
    why: str | None = None  # why the relation is unknown, or not verified to the last element


@dataclass(frozen=True)
class Problem:
    """A problem, its consequence and its remedy. `code` is stable; see docs/problems.

    >>> import tallystick
    >>> from tallystick.models.teaching import BareBonesLM
    >>> tallystick.ties(BareBonesLM(50, 4)).problems  # a config of its own would say what to tie
    ()
    """

    code: str
    names: tuple[str, ...]
    message: str
    remedy: str


@dataclass(frozen=True, repr=False)
class Ties(Displayed):
    """All groups of a model, and whether config, checkpoint and live model agree on them.

    >>> import tallystick
    >>> answer = tallystick.ties("gpt2")
    >>> answer.verdict, answer.groups[0].names
    ('consistent', ('transformer.wte.weight', 'lm_head.weight'))
    """

    source: str
    kind: str
    groups: tuple[Group, ...]
    verdict: str  # consistent | contradiction | lost | unknown
    problems: tuple[Problem, ...]
    notes: tuple[str, ...] = ()  # why it is uncertain which tensors should be tied

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON of ``tallystick ties``. Keys are a contract: added, never renamed."""
        out = asdict(self)
        out["notes"] = list(self.notes)
        for part in ("groups", "problems"):
            out[part] = [{**item, "names": list(item["names"])} for item in out[part]]
        return out


def ties(ledger: Ledger) -> Ties:
    """Return a ledger's groups of tied tensors, and the problems with them.

    Values are read only if separate memory leaves a relation open and the source can read them.
    Otherwise the relation is ``unknown``. A config's ledger has no memory: tensors that the config
    ties are tied.
    """
    ledger = ledger.in_full
    notes = list(ledger.evidence.doubts)
    groups = _shared(ledger)
    shared = [set(group.names) for group in groups]
    for names in ledger.evidence.declared or ():
        if not any(set(names) <= one for one in shared):
            groups.append(_group(ledger, names, expected=True))
    named = [set(group.names) for group in groups]
    for alike in ledger.evidence.values.duplicates() if ledger.evidence.values else ():
        if not any(set(alike) <= one for one in named) and not _has_buffer(ledger, alike):
            groups.append(_group(ledger, alike, expected=_expected(ledger, alike)))
            named.append(set(alike))
    problems = [problem for group in groups if (problem := _problem(ledger, group))]
    match _not_stored(ledger):
        case str() as note:
            notes.append(note)
        case Problem() as problem:
            problems.append(problem)
    if ledger.evidence.unread is not None:
        problems.append(
            Problem(
                "config-not-read",
                (),
                f"cannot tell what the config ties: {ledger.evidence.unread}",
                "fix config.json, and run this again",
            )
        )
    silent = not _says(ledger) and not any(_is_pair(ledger, group) for group in groups)
    if silent and not (groups or notes):
        notes.append(_SILENT)
    doubtful = bool(notes) or silent or any(_is_open(group) for group in groups)
    verdict = _verdict(groups, problems, doubtful=doubtful)
    return Ties(ledger.source, ledger.kind, tuple(groups), verdict, tuple(problems), tuple(notes))


# -- groups ---------------------------------------------------------------------------------------


def _shared(ledger: Ledger) -> list[Group]:
    groups = []
    for tie in ledger.ties:
        if tie.relation == "unknown":  # both are stored, so their values decide
            groups.append(_group(ledger, tie.names, expected=_expected(ledger, tie.names)))
        else:
            groups.append(Group(tie.names, tie.relation, _expected(ledger, tie.names), tie.parameters, 0))
    return groups


def _group(ledger: Ledger, names: Sequence[str], *, expected: bool | None) -> Group:
    """Return a group of names in at least partly separate memory, with their values compared."""
    apart = _apart(ledger, names)
    relation, why = worst(_compared(ledger, apart))
    others = [entry for name in apart[1:] if (entry := ledger.tensors.get(name))]
    saved = sum(entry.size for entry in others)
    wasted = sum(size_in_bytes(entry.size, entry.dtype) for entry in others) if relation == "copied" else 0
    return Group(tuple(names), relation, expected, saved, wasted, why)


def _apart(ledger: Ledger, names: Sequence[str]) -> list[str]:
    """Return one name for each separate memory, beginning with the first name's memory."""
    if ledger.kind != "module":  # a file stores tensors separately, whatever the config ties
        return [name for name in names if ledger.evidence.values is None or ledger.evidence.values.holds(name)]
    first: dict[str, str] = {}
    for name in names:
        entry = ledger.tensors.get(name)  # a lazy parameter has no entry, because it has no shape yet
        first.setdefault(entry.storage if entry else name, name)
    return list(first.values())


def _compared(ledger: Ledger, names: Sequence[str]) -> list[Compared]:
    """Compare every pair of names."""
    pairs = list(combinations(names, 2))
    if ledger.evidence.values is None or not pairs:
        return [Compared("unknown", "there are no values to compare")]
    return [ledger.evidence.values.compare(one, other) for one, other in pairs]


def _expected(ledger: Ledger, names: Sequence[str]) -> bool | None:
    if ledger.kind in ("preset", "config"):
        return True
    if ledger.evidence.declared is None:
        return None
    return any(set(names) <= set(group) for group in ledger.evidence.declared)


def _says(ledger: Ledger) -> bool:
    """Return whether a config or the model states which tensors are tied."""
    return ledger.kind in ("preset", "config") or ledger.evidence.declared is not None


def _has_buffer(ledger: Ledger, names: Sequence[str]) -> bool:
    """Return whether a buffer is among the names: equal masks of equal layers are not ties."""
    return any(name in ledger.tensors and ledger.tensors[name].buffer for name in names)


def _is_pair(ledger: Ledger, group: Group) -> bool:
    """Return whether a token embedding or a head is among the names."""
    entries = [ledger.tensors[name] for name in group.names if name in ledger.tensors]
    return any(entry.role in ("token_embedding", "head") and len(entry.shape) > 1 for entry in entries)


def _is_open(group: Group) -> bool:
    """Return whether the tensors differ, and nothing says that they should be tied."""
    return group.expected is None and group.relation == "untied"


# -- what is wrong --------------------------------------------------------------------------------


def _problem(ledger: Ledger, group: Group) -> Problem | None:
    # If values differ or may differ, the user has to choose: retie refuses to guess.
    remedy = remedy_of(ledger, group.names, choose=group.relation == "untied" or group.why is not None)
    if group.relation == "aliased":
        first, others = group.names[0], " and ".join(group.names[1:])
        return Problem(
            "aliased-parameters",
            group.names,
            f"{first} and {others} share memory in distinct Parameters: their gradients do not add up, and an optimizer"
            " updates them twice",
            remedy,
        )
    if group.expected is None and _is_lost(ledger, group):
        return _lost(ledger, group, remedy)
    if not group.expected or group.relation == "tied":
        return None
    return _untied(ledger, group, remedy) if ledger.kind == "module" else _stored_apart(ledger, group)


def _untied(ledger: Ledger, group: Group, remedy: str) -> Problem:
    """Return the problem of a live model, whose memory is known to be separate."""
    first, strays = _parted(ledger, group)
    are, copied = "is" if len(strays) == 1 else "are", group.relation == "copied"
    still = "equal so far, but they will diverge in training" if copied else "they will diverge in training"
    if group.why:
        still += f"; {'values not compared: ' * (group.relation == 'unknown')}{group.why}"
    return Problem(
        "copied-parameters" if copied else "untied-head",
        group.names,
        f"{' and '.join(strays)} {are} no longer tied to {first}: +{group.parameters:,}; {still}",
        remedy,
    )


def _stored_apart(ledger: Ledger, group: Group) -> Problem | None:
    """Return the problem of a file that stores tensors separately although its config ties them."""
    if group.relation == "unknown":
        return None
    first, strays = _parted(ledger, group)
    others = " and ".join(strays)
    if group.relation == "copied":
        return Problem(
            "duplicate-in-file",
            group.names,
            f"{others} is stored in addition to the equal {first}, although the config ties them:"
            f" {group.wasted_bytes:,} duplicate bytes",
            "write a repaired copy that stores it once: tallystick ties FOLDER --fix OUT",
        )
    return Problem(
        "config-says-tied-file-differs",
        group.names,
        f"the config ties {others} to {first}, but the file holds different values: loaders disagree, and"
        f" some overwrite the trained {others}",
        "write a repaired copy: tallystick ties FOLDER --fix OUT, with --as untied if the two were"
        " trained apart, else --as tied",
    )


def _is_lost(ledger: Ledger, group: Group) -> bool:
    """Return whether embedding and head are equal, possibly rounded to another dtype."""
    rounded = group.relation == "untied" and (group.why or "").startswith(ROUNDED)
    return (group.relation == "copied" or rounded) and _is_pair(ledger, group)


def _lost(ledger: Ledger, group: Group, remedy: str) -> Problem:
    """Return the problem of equal matrices if nothing says whether they should be tied."""
    first, strays = _parted(ledger, group)
    others, are = " and ".join(strays), "is" if len(strays) == 1 else "are"
    equal = "equal to" if group.relation == "copied" else "equal (except for the dtype) to"
    live = ledger.kind == "module"
    cost = (
        f"+{group.parameters:,}; they will diverge in training" if live else f"{group.wasted_bytes:,} duplicate bytes"
    )
    return Problem("lost-tie", group.names, f"{others} {are} {equal} {first}, but not tied to it: {cost}", remedy)


def _parted(ledger: Ledger, group: Group) -> tuple[str, list[str]]:
    """Return the name that represents a group, and the names outside its memory.

    In a live model, the memory with the most names represents the group.
    """
    if ledger.kind != "module":
        first, *rest = _apart(ledger, group.names)
        return first, rest
    storages = [ledger.tensors[name].storage if name in ledger.tensors else name for name in group.names]
    common = max(storages, key=storages.count)  # on a draw, the first one
    strays = [name for name, storage in zip(group.names, storages, strict=True) if storage != common]
    return group.names[storages.index(common)], strays


def _not_stored(ledger: Ledger) -> Problem | str | None:
    """Return the problem of an untied head or embedding that no file stores under its name.

    Return a note instead if the tensor may be stored under another name.
    """
    if ledger.evidence.stored is None or ledger.evidence.described is None:
        return None
    described = [entry for entry in ledger.evidence.described.entries if not entry.buffer]
    matrices = [entry for entry in described if len(entry.shape) > 1]
    heads = {entry.shape for entry in matrices if entry.role == "head"}
    sides = [e.name for e in matrices if e.role == "head" or (e.role == "token_embedding" and e.shape in heads)]
    absent = {entry.name for entry in described} & set(ledger.evidence.mismatches.get("missing", ()))
    names = tuple(name for name in sides if name in absent)
    if not names:
        return None
    why = None
    if ledger.evidence.doubts:
        why = ledger.evidence.doubts[0]
    elif len(names) == len(sides):
        why = "the embedding is not stored under its name either"
    elif 2 * len(absent) > len(described):
        why = f"{len(absent)} of the config's {len(described)} names are missing"
    if why:
        return f"{names[0]} is not stored under that name; it may be missing or renamed: {why}"
    return Problem(
        "config-says-untied-head-missing",
        names,
        f"the config does not tie {names[0]}, and the file does not hold it: loaders initialise it at"
        " random, and the model outputs noise",
        "if it was trained tied, write a repaired copy: tallystick ties FOLDER --fix OUT",
    )


def _verdict(groups: Sequence[Group], problems: Sequence[Problem], *, doubtful: bool) -> str:
    codes = {problem.code for problem in problems}
    # Duplicate storage or an unread config contradicts nothing. Without any statement about ties,
    # there is nothing to contradict.
    if codes - {"duplicate-in-file", "config-not-read", "lost-tie"}:
        return "contradiction"
    if "lost-tie" in codes:
        return "lost"
    if doubtful or "config-not-read" in codes or any(group.relation == "unknown" for group in groups):
        return "unknown"
    return "consistent"
