"""The ledger: every tensor of a model, once by name, with who shares storage with whom.

Sources write it, answers read it. It is plain data: no file format, no torch.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from fractions import Fraction
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from tallystick.core.anatomy import Attending, Recurring
from tallystick.core.description import ModelDescription
from tallystick.core.dtypes import size_in_bytes
from tallystick.core.evidence import Evidence, Fetched
from tallystick.core.packed_names import model_name
from tallystick.core.tensor_names import layer_of
from tallystick.errors import BadInput
from tallystick.extras import needing

if TYPE_CHECKING:
    import pandas

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


@dataclass(frozen=True, repr=False)
class Ledger:
    """Where every parameter of one model goes. Nothing changes it: `dataclasses.replace` makes another.

    Counts are in elements, sizes in bytes. The words are used as everywhere in tallystick: `total` (unique) counts
    each storage once, `by_name` counts every name.
    """

    rolled: tuple[Entry, ...]  # in the order in which the model prints, stacks rolled up
    _: KW_ONLY
    source: str  # what the user named
    kind: str  # preset | config | module, or the format of a checkpoint, such as safetensors
    notes: tuple[str, ...] = field(default=(), hash=False)
    model: ModelDescription = field(default=ModelDescription(), hash=False)  # frozen, so one for all
    evidence: Evidence = field(default=Evidence(), hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rolled", tuple(self.rolled))
        object.__setattr__(self, "notes", tuple(self.notes))

    def with_notes(self, *notes: str) -> Ledger:
        """The same with these notes after its own."""
        return replace(self, notes=(*self.notes, *notes))

    def with_fetched(self, fetched: Fetched) -> Ledger:
        """The same with what its files cost that are not on this machine, and a note of that."""
        return replace(self, evidence=replace(self.evidence, fetched=fetched)).with_notes(str(fetched))

    @cached_property
    def in_full(self) -> Ledger:
        """The ledger with what its source learns only when asked, since it takes the seconds that a count must not."""
        return self.evidence.ask() if self.evidence.ask else self

    @property
    def as_described(self) -> Ledger:
        """The ledger of the config that describes this model: its own where no other was read."""
        return self.evidence.described or self

    @property
    def filed(self) -> bool:
        """Whether it was read of files of weights, and not of a config that says what these would hold."""
        return self.evidence.stored is not None and self.kind not in ("preset", "config")

    # -- what its description and its evidence hold, by shorter names --------------------------------

    @property
    def architecture(self) -> str | None:
        """The model type, or the name of a live module's class."""
        return self.model.architecture

    @property
    def attending(self) -> tuple[Attending, ...]:
        """How each layer attends, where the source says so."""
        return self.model.attending

    @property
    def recurring(self) -> tuple[Recurring, ...]:
        """Which layers carry a state along, where the source says so."""
        return self.model.recurring

    @property
    def towers(self) -> tuple[str, ...]:
        """How the names of tensors begin that read images or sound, and no token."""
        return self.model.towers

    @property
    def described(self) -> Ledger | None:
        """The ledger of the config that came with a checkpoint or a live module."""
        return self.evidence.described

    @property
    def mismatches(self) -> Mapping[str, Sequence[str]]:
        """The names by which tensors and config differ: ``missing``, ``unexpected``, ``misshaped``."""
        return self.evidence.mismatches

    @property
    def stored(self) -> tuple[int, int] | None:
        """Elements and bytes in files, buffers and duplicates included."""
        return self.evidence.stored

    @property
    def fetched(self) -> Fetched | None:
        """What its files cost that are not on this machine."""
        return self.evidence.fetched

    # -- single tensors ---------------------------------------------------------------------------

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Every single tensor, buffers included."""
        if sum(entry.copies for entry in self.rolled) > MOST_LISTED:
            raise BadInput(
                f"{self.source} has more than {MOST_LISTED:,} tensors: too many to list one by one", code="too-large"
            )
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
                    ties.append(_tie(shared, self.evidence.relations.get(storage, "tied")))
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
            raise BadInput(f"cannot count by {what!r}: choose role, layer, tensor or dtype", code="bad-value")
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

    def __getstate__(self) -> dict[str, Any]:
        """For `pickle`: with what the source learns only when asked, since nobody can be asked elsewhere."""
        return {one.name: getattr(self.in_full, one.name) for one in fields(self)}

    def __copy__(self) -> Ledger:
        """Itself, since nothing changes it."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Ledger:
        """Itself, and so it reads the same values: of a live model, the same tensors."""
        return self

    def __repr__(self) -> str:
        return f"<Ledger of {self.source}: {self.total:,} parameters>"

    def _repr_html_(self) -> str:
        from tallystick.report.html import ledger_table  # a notebook's door, opened only there

        return ledger_table(self)


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
