"""Evidence about a model: its config, declared ties and values, and where they disagree."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

L = TypeVar("L")  # `Ledger`, which holds evidence itself

# From best to worst. An unknown pair may turn out to be copied or untied. So among several pairs,
# one unknown pair leaves their equality unknown, and one untied pair decides that they differ.
RELATIONS = ("tied", "aliased", "copied", "unknown", "untied")


# How `why` begins if values differ only by a cast to another dtype: an untied pair, once tied.
ROUNDED = "the same values, rounded to "


class Compared(NamedTuple):
    """Relation of two tensors; `why` says why it is unknown, not exact, or why values differ."""

    relation: str  # tied | aliased | copied | untied | unknown
    why: str | None = None


def worst(compared: Iterable[Compared]) -> Compared:
    """Return the relation furthest from `tied`."""
    return max(compared, key=lambda pair: RELATIONS.index(pair.relation))


class Values(Protocol):
    """Lazy access to tensor values, for questions that names and shapes cannot settle."""

    @property
    def registered(self) -> str:
        """The wrapper of a live model that has already collected its Parameters, or "".

        Its tensors can no longer be tied.
        """

    def compare(self, one: str, other: str) -> Compared:
        """Return ``copied``, ``untied`` or ``unknown`` for two tensors in separate memory."""

    def holds(self, name: str) -> bool:
        """Return whether a tensor is really stored; a file may omit a tied tensor."""

    def duplicates(self) -> Iterable[Sequence[str]]:
        """Yield groups of names that seem to be one tensor, declared tied or not."""


class Fetched(NamedTuple):
    """Bytes and requests spent on remote files."""

    bytes: int
    of_bytes: int  # size of these files
    requests: int  # including file listings and redirects

    def __str__(self) -> str:
        return f"fetched {self.bytes:,} of {self.of_bytes:,} bytes in {self.requests:,} requests"


@dataclass(frozen=True)
class Evidence(Generic[L]):
    """The comparison of a model with its config and its values. Empty for a config alone."""

    described: L | None = None  # by the config that came with a checkpoint or a live module
    mismatches: Mapping[str, Sequence[str]] = field(default_factory=dict)  # kind of difference from the config -> names
    declared: Sequence[Sequence[str]] | None = None  # groups of names declared tied; None if nothing declares any
    unread: str | None = None  # why the config of a checkpoint could not be used
    doubts: Sequence[str] = ()  # reasons to doubt the declared ties
    relations: Mapping[str, str] = field(default_factory=dict)  # storage -> relation, if names alone do not show it
    # Elements and bytes in files, including buffers and duplicates: of a checkpoint, or predicted
    # from a quantised config.
    stored: tuple[int, int] | None = None
    fetched: Fetched | None = None  # spent on remote files
    values: Values | None = field(default=None, compare=False)  # reads values if a relation depends on them
    ask: Callable[[], L] | None = field(default=None, compare=False)  # returns the ledger with slow facts too

    def __post_init__(self) -> None:
        mismatches = {kind: tuple(names) for kind, names in self.mismatches.items() if names}
        declared = None if self.declared is None else tuple(map(tuple, self.declared))
        for name, value in {
            "mismatches": MappingProxyType(mismatches),
            "declared": declared,
            "doubts": tuple(self.doubts),
            "relations": MappingProxyType(dict(self.relations)),
        }.items():
            object.__setattr__(self, name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by fields, without `ask`: read-only mappings and the source cannot be pickled."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        plain = {"mismatches": dict(self.mismatches), "relations": dict(self.relations), "ask": None}
        return Evidence, tuple({**values, **plain}.values())
