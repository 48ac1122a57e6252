"""The ledger: every tensor of a model, once by name, with who shares storage with whom.

Sources write it, answers read it. It is plain data: no file format, no torch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from fractions import Fraction
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from tallystick.anatomy import Attending, Mixing, Part, Recurring
from tallystick.dtypes import size_in_bytes
from tallystick.errors import BadInput
from tallystick.extras import needing
from tallystick.numbering import layer_of
from tallystick.packed_names import model_name

if TYPE_CHECKING:
    import pandas

    from tallystick.config import Recipe

ROLES = (
    "token_embedding",
    "position_embedding",
    "attention",
    "mlp",
    "experts",
    "router",
    "ssm",
    "conv",
    "norm",
    "head",
    "other",
)
# The tables' split: token and learned position embeddings, and the head whether tied or not,
# against all the rest. So untying a head moves nothing from one side to the other.
EMBEDDING_ROLES = frozenset({"token_embedding", "position_embedding", "head"})

# One config can ask for 10^12 layers; the counts stand, but nobody can be shown each tensor.
MOST_LISTED = 20_000_000


class Entry(NamedTuple):
    """One named tensor, or a stack of them whose names differ only in their numbers.

    In a stack, `name` and `storage` hold one ``{}`` for each item of `axes`, a range of numbers:
    ``transformer.h.{}.ln_1.weight`` with ``(range(0, 12),)`` is twelve tensors. It stays rolled up
    until somebody asks for single tensors, so a 700B mixture of experts costs no more than GPT-2.
    """

    name: str  # exactly the checkpoint's
    shape: tuple[int, ...]
    role: str
    dtype: str
    storage: str  # the name that first used this storage: entries that share it carry the same one
    unique: int  # elements that no earlier entry holds: all of them, 0 for a tie, some for an overlap
    identity: str = ""  # the name that first used this Parameter object; "" is its own
    trainable: bool = True
    buffer: bool = False
    active: Fraction | None = None  # the share that one token uses; None is all
    axes: tuple[Axis, ...] = ()
    packed: int | None = None  # bytes of one in the files: of packed values, or of scales beside them

    @property
    def size(self) -> int:
        """Elements of one tensor."""
        return int(math.prod(self.shape))

    @property
    def copies(self) -> int:
        """How many tensors this entry stands for."""
        return int(math.prod(axis.length for axis in self.axes)) if self.axes else 1

    @property
    def bytes(self) -> int:
        """Bytes of the elements of one tensor that no earlier entry holds: in its dtype, or as they are packed."""
        if self.packed is None:
            return size_in_bytes(self.unique, self.dtype)
        return self.packed if self.unique else 0

    @property
    def called(self) -> str:
        """What the model calls it: values that are packed may be stored under another name."""
        return model_name(self.name, packed=self.packed is not None and not self.buffer)

    def numbered(self, number: int) -> Entry:
        """One item of a stack: its first ``{}`` filled in."""
        name, storage = (text.replace("{}", str(number), 1) for text in (self.name, self.storage))
        return self._replace(name=name, storage=storage, axes=self.axes[1:])

    def unrolled(self) -> Iterator[Entry]:
        """Each single tensor, in the order of the numbers in its name."""
        if not self.axes:
            yield self
            return
        for number in range(self.axes[0].start, self.axes[0].start + self.axes[0].length):
            yield from self.numbered(number).unrolled()


class Axis(NamedTuple):
    """The numbers `start`, `start + 1`, … that one ``{}`` of a name stands for."""

    start: int
    length: int


class Tie(NamedTuple):
    """Names that share storage, and how (the relations of the word list)."""

    names: tuple[str, ...]
    relation: str  # tied | aliased | copied | untied | unknown
    parameters: int  # elements that sharing saves: those of all names, less the distinct ones


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


class Fetched(NamedTuple):
    """What was fetched of files that are not on this machine."""

    bytes: int
    of_bytes: int  # what these files hold
    requests: int  # lists of files and redirects among them

    def __str__(self) -> str:
        return f"fetched {self.bytes:,} of {self.of_bytes:,} bytes in {self.requests:,} requests"


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


class Ledger:
    """Where every parameter of one model goes.

    `entries` are in the order in which the model prints. Counts are in elements, sizes in bytes.
    The words are used as everywhere in tallystick: `total` (unique) counts each storage once,
    `by_name` counts every name.
    """

    def __init__(
        self,
        entries: Iterable[Entry],
        *,
        source: str,
        kind: str,
        architecture: str | None = None,
        symbols: Mapping[str, int] | None = None,
        notes: Sequence[str] = (),
        relations: Mapping[str, str] | None = None,
        stored: tuple[int, int] | None = None,
        described: Ledger | None = None,
        mismatches: Mapping[str, Sequence[str]] | None = None,
        meant: Iterable[Sequence[str]] | None = None,
        values: Values | None = None,
        unread: str | None = None,
        doubts: Sequence[str] = (),
        ask: Callable[[], Ledger] | None = None,
        attending: Sequence[Attending] = (),
        recipe: Recipe | None = None,
        parts: Sequence[Part] = (),
        recurring: Sequence[Recurring] = (),
        mixing: Sequence[Mixing] = (),
        irregular: str = "",
        towers: Sequence[str] = (),
        unlearned: Sequence[str] = (),
    ) -> None:
        self.rolled = tuple(entries)
        self.source = source
        self.kind = kind  # preset | config | module, or the format of a checkpoint, such as safetensors
        self.architecture = architecture
        self.symbols = dict(symbols or {})  # the config keys in the shapes, with their values
        self.notes = tuple(notes)
        self.relations = dict(relations or {})  # storage -> relation, where names alone cannot tell
        self.stored = stored  # (elements, bytes) in files, buffers and duplicates included: a checkpoint's, or those that a quantised config means
        self.described = described  # the ledger of the config beside a checkpoint or module
        self.mismatches = {kind: tuple(names) for kind, names in (mismatches or {}).items() if names}

        # Names that config or model mean to be one tensor; None where neither says anything.
        self.meant = None if meant is None else tuple(tuple(names) for names in meant)
        self.unread = unread  # why the config beside a checkpoint could not be used
        self.doubts = tuple(doubts)  # why it is not certain what is meant to be one
        self._ask = ask
        self.positions: int | None = None  # tokens of a sequence, as a config states them where none are learned
        self.fetched: Fetched | None = None  # what its files cost that are not on this machine
        self.attending = tuple(attending)  # how each layer attends, where the source tells
        self.recurring = tuple(recurring)  # which layers carry a state along, where the source tells
        self.mixing = tuple(mixing)  # what layers multiply beside their tensors and attention, where the source tells
        self.parts = tuple(parts)  # what runs, where the source tells
        self.irregular = irregular  # which products do not take each token once, in words
        self.towers = tuple(towers)  # what reads images or sound and no token, by the names in front of its tensors
        self.unlearned = tuple(unlearned)  # what has parameters and no gradients, by the names in front of them
        self.values = values  # reads values where a relation depends on them; None where there are none
        self.recipe = recipe  # the config that laid it out; None where none did

    @cached_property
    def in_full(self) -> Ledger:
        """The ledger with what its source learns only when asked, since it takes the seconds that a count must not."""
        return self._ask() if self._ask else self

    @property
    def filed(self) -> bool:
        """Whether it was read of files of weights, and not of a config that says what these would hold."""
        return self.stored is not None and self.kind not in ("preset", "config")

    # -- single tensors ---------------------------------------------------------------------------

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Every single tensor, buffers included."""
        if sum(entry.copies for entry in self.rolled) > MOST_LISTED:
            raise BadInput(f"{self.source} has more than {MOST_LISTED:,} tensors: too many to list one by one")
        return tuple(_in_printing_order(self.rolled))

    @cached_property
    def tensors(self) -> dict[str, Entry]:
        """Every single tensor by its name, unrolled once however often it is asked for."""
        return {entry.name: entry for entry in self.entries}

    @property
    def parameters(self) -> tuple[Entry, ...]:
        """The entries that are parameters, stacks rolled up."""
        return tuple(entry for entry in self.rolled if not entry.buffer)

    @property
    def ties(self) -> tuple[Tie, ...]:
        """The groups of names with one storage, in order of first appearance."""
        groups: dict[str, list[Entry]] = {}
        for entry in self.parameters:
            groups.setdefault(entry.storage, []).append(entry)
        ties = []
        for storage, group in groups.items():
            # Runs of one stack (dense layers, then sparse ones) have one rolled name, and share nothing.
            if len(group) == 1 or all(entry.name == storage for entry in group):
                continue
            singles: dict[str, list[Entry]] = {}
            for entry in group:
                for single in entry.unrolled():
                    singles.setdefault(single.storage, []).append(single)
            for shared in singles.values():
                if len(shared) == 1:
                    continue
                if self.kind == "module":
                    ties += _by_identity(shared)
                else:
                    ties.append(_tie(shared, self.relations.get(storage, "tied")))
        return tuple(ties)

    # -- totals -----------------------------------------------------------------------------------

    @property
    def total(self) -> int:
        """Unique parameters: elements of distinct storage. The number that people mean."""
        return total_of(self.rolled)

    @property
    def totals(self) -> dict[str, int | None]:
        """Every total by its word. `active` is None where only a config could tell."""
        parameters = self.parameters
        unique = self.total
        embedding = sum(e.unique * e.copies for e in parameters if e.role in EMBEDDING_ROLES)
        totals: dict[str, int | None] = {
            "unique": unique,
            "by_name": sum(e.size * e.copies for e in parameters),
        }
        if self.kind == "module":
            # What sum(p.numel() for p in model.parameters()) gives: distinct Parameter objects.
            totals["parameters"] = sum(e.size for e in parameters if e.identity in ("", e.name))
        if self.stored is not None:
            totals["stored"] = self.stored[0]
        totals["trainable"] = sum(e.unique * e.copies for e in parameters if e.trainable)
        totals["embedding"] = embedding
        totals["non_embedding"] = unique - embedding
        totals["active"] = self._active()
        totals["buffers"] = sum(e.size * e.copies for e in self.rolled if e.buffer)
        totals["bytes"] = sum(e.bytes * e.copies for e in parameters)
        if self.stored is not None:
            totals["stored_bytes"] = self.stored[1]
        return totals

    def _active(self) -> int | None:
        if any(e.active is None for e in self.parameters if e.role == "experts"):
            return None
        idle = sum(e.unique * e.copies * (1 - e.active) for e in self.parameters if e.active is not None)
        return int(self.total - idle)

    # -- breakdowns -------------------------------------------------------------------------------

    def by(self, what: str) -> dict[str, int]:
        """Unique parameters by ``"role"``, ``"layer"``, ``"tensor"`` or ``"dtype"``, in printing order."""
        counts: dict[str, int] = {}
        if what in ("role", "dtype"):
            for entry in self.parameters:
                key = entry.role if what == "role" else entry.dtype
                counts[key] = counts.get(key, 0) + entry.unique * entry.copies
            if what == "role":
                return {role: counts[role] for role in ROLES if role in counts}
            return counts
        if what not in ("layer", "tensor"):
            raise BadInput(f"cannot count by {what!r}: choose role, layer, tensor or dtype")
        for entry in self.entries:
            if not entry.buffer:
                key = entry.name if what == "tensor" else layer_of(entry.name)
                counts[key] = counts.get(key, 0) + entry.unique
        return counts

    def rows(self, what: str) -> list[dict[str, Any]]:
        """The lines of a breakdown: what `by` gives, with shares, and shapes where single tensors are asked for."""
        total = self.total
        if what != "tensor":
            rows: list[dict[str, Any]] = [
                {what: name, "parameters": count, "share": _share(count, total)}
                for name, count in self.by(what).items()
            ]
            if what == "dtype":
                for row in rows:
                    row["bytes"] = sum(e.bytes * e.copies for e in self.parameters if e.dtype == row["dtype"])
            return rows
        return [
            {
                "tensor": entry.name,
                "shape": [int(dim) for dim in entry.shape],
                "role": entry.role,
                "dtype": entry.dtype,
                "parameters": 0 if entry.buffer else entry.unique,
                "share": _share(0 if entry.buffer else entry.unique, total),
                "trainable": entry.trainable and not entry.buffer,
                "buffer": entry.buffer,
                "shares_with": None if entry.storage == entry.name else entry.storage,
            }
            for entry in self.entries
        ]

    # -- doors ------------------------------------------------------------------------------------

    def to_dict(self, by: str | None = None) -> dict[str, Any]:
        """The JSON of ``tallystick count``: keys are a contract, added to and never renamed."""
        out: dict[str, Any] = {
            "source": self.source,
            "kind": self.kind,
            "architecture": self.architecture,
            "totals": self.totals,
            "ties": [
                {"names": list(tie.names), "relation": tie.relation, "parameters": int(tie.parameters)}
                for tie in self.ties
            ],
            "components": self.rows("role"),
            "notes": list(self.notes),
        }
        if self.fetched is not None:
            out["fetched"] = self.fetched._asdict()
        if self.described is not None:
            out["mismatches"] = {kind: list(names) for kind, names in self.mismatches.items()}
        if by is not None:
            out["rows"] = self.rows(by)
        return out

    def to_pandas(self, by: str = "tensor") -> pandas.DataFrame:
        """The rows of a breakdown as a data frame (needs pandas)."""
        with needing("to_pandas"):
            import pandas

        return pandas.DataFrame(self.rows(by))

    def __eq__(self, other: object) -> bool:
        """Whether two ledgers hold the same tensors and say the same of them, wherever their values are read from."""
        return self._said() == other._said() if isinstance(other, Ledger) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.source, self.kind, self.rolled))

    def _said(self) -> dict[str, Any]:
        return {name: said for name, said in vars(self).items() if name not in _NOT_SAID}

    def __getstate__(self) -> dict[str, Any]:
        """For `pickle`: with what the source learns only when asked, since nobody can be asked elsewhere."""
        return {**self.in_full._said(), "values": self.values, "recipe": self.recipe, "_ask": None}

    def __deepcopy__(self, memo: dict[int, Any]) -> Ledger:
        """A copy that reads the same values: of a live model, the same tensors."""
        copy = object.__new__(Ledger)
        copy.__dict__.update(deepcopy(self._said(), memo), values=self.values, recipe=self.recipe, _ask=self._ask)
        return copy

    def __repr__(self) -> str:
        return f"<Ledger of {self.source}: {self.total:,} parameters>"

    def _repr_html_(self) -> str:
        from tallystick.report.html import ledger_table  # a notebook's door, opened only there

        return ledger_table(self)


# What a ledger looks up, and what it has looked up already.
_NOT_SAID = frozenset({"values", "recipe", "_ask", "in_full", "tensors"})


def _tie(shared: Sequence[Entry], relation: str, saved: int | None = None) -> Tie:
    saved = sum(entry.size - entry.unique for entry in shared) if saved is None else saved
    return Tie(tuple(entry.name for entry in shared), relation, saved)


def _by_identity(shared: Sequence[Entry]) -> list[Tie]:
    """The ties in one memory of a live module: the names of each Parameter, and the distinct Parameters."""
    parameters: dict[str, list[Entry]] = {}
    for entry in shared:
        parameters.setdefault(entry.identity or entry.name, []).append(entry)
    if len(parameters) == 1:
        return [_tie(shared, "tied")]
    tied = [_tie(names, "tied", sum(e.size for e in names[1:])) for names in parameters.values() if len(names) > 1]
    return [*tied, _tie([names[0] for names in parameters.values()], "aliased")]


def _in_printing_order(rolled: Iterable[Entry]) -> Iterator[Entry]:
    """Single tensors layer by layer: a stack's neighbours with the same root are unrolled together."""

    def root(entry: Entry) -> str:
        return "." + entry.name.partition("{}")[0] if entry.axes else ""

    for prefix, neighbours in groupby(rolled, key=root):
        if not prefix:
            yield from neighbours
            continue
        items: dict[int, list[Entry]] = {}
        for entry in neighbours:
            for number in range(entry.axes[0].start, entry.axes[0].start + entry.axes[0].length):
                items.setdefault(number, []).append(entry.numbered(number))
        for number in sorted(items):
            yield from _in_printing_order(items[number])


def total_of(entries: Iterable[Entry]) -> int:
    """Unique parameters of some entries, buffers left out."""
    return sum(entry.unique * entry.copies for entry in entries if not entry.buffer)


def _share(count: int, total: int) -> float:
    return round(count / total, 6) if total else 0.0
