"""What a source compared a model with, and what that showed: its config, its declared ties, its values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from tallystick.core.ledger import Ledger

# From the best to the worst. What is not known may turn out to be copied or untied: so of several pairs, one that is
# unknown takes it back that all are equal, and one that differs settles it whatever the others are.
RELATIONS = ("tied", "aliased", "copied", "unknown", "untied")


# How `why` begins where a dtype alone makes values differ: of an untied pair, which was one before it was cast.
ROUNDED = "the same values, rounded to "


class Compared(NamedTuple):
    """How two tensors belong together; why that is not known, or not to the last element, or why values differ."""

    relation: str  # tied | aliased | copied | untied | unknown
    why: str | None = None


def worst(compared: Iterable[Compared]) -> Compared:
    """What is to be said of several pairs together: the one that is furthest from tied."""
    return max(compared, key=lambda pair: RELATIONS.index(pair.relation))


class Values(Protocol):
    """What a source offers to whoever must know values: it reads them only when asked."""

    @property
    def registered(self) -> str:
        """The wrapper of a live model that has listed its Parameters, which cannot be tied any more; "" where none has."""

    def compare(self, one: str, other: str) -> Compared:
        """``copied``, ``untied`` or ``unknown``: how two tensors in separate memory compare."""

    def holds(self, name: str) -> bool:
        """Whether a tensor of that name is really there: a file leaves out what a tie gives back."""

    def duplicates(self) -> Iterable[Sequence[str]]:
        """Names that look as if they were one tensor, whoever said so or not."""


class Fetched(NamedTuple):
    """What was fetched of files that are not on this machine."""

    bytes: int
    of_bytes: int  # what these files hold
    requests: int  # lists of files and redirects among them

    def __str__(self) -> str:
        return f"fetched {self.bytes:,} of {self.of_bytes:,} bytes in {self.requests:,} requests"


@dataclass(frozen=True)
class Evidence:
    """What was read, and what it was compared with. Every ledger has it; of a config alone it is empty."""

    described: Ledger | None = None  # by the config that came with a checkpoint or a live module
    mismatches: Mapping[str, Sequence[str]] = field(default_factory=dict)  # where the two differ: what -> names
    declared: Sequence[Sequence[str]] | None = None  # names that are to be one tensor; None where nothing says so
    unread: str | None = None  # why the config of a checkpoint could not be used
    doubts: Sequence[str] = ()  # why it is not certain what is declared to be one
    relations: Mapping[str, str] = field(default_factory=dict)  # storage -> relation, where names alone do not show it
    # Elements and bytes in files, buffers and duplicates included: a checkpoint's, or those that a quantised config means.
    stored: tuple[int, int] | None = None
    fetched: Fetched | None = None  # what files cost that are not on this machine
    values: Values | None = field(default=None, compare=False)  # reads values where a relation depends on them
    ask: Callable[[], Ledger] | None = field(default=None, compare=False)  # the ledger with what takes seconds to learn

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
        """By its fields: read-only mappings cannot be pickled, and in another process there is nothing to ask."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        plain = {"mismatches": dict(self.mismatches), "relations": dict(self.relations), "ask": None}
        return Evidence, tuple({**values, **plain}.values())
