"""The ledger: every named tensor of a model, and which names share storage.

Sources write a ledger, answers read it. It is plain data: no file format, no torch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tallystick.arguments import named
from tallystick.core.anatomy import Attending, Recurring
from tallystick.core.description import ModelDescription
from tallystick.core.display import Displayed
from tallystick.core.entries import (
    EMBEDDING_ROLES,
    ROLES,
    Entry,
    Tie,
    in_printing_order,
    ties_of,
    total_of,
)
from tallystick.core.evidence import Evidence, Fetched
from tallystick.core.module_tree import module_rows
from tallystick.core.tensor_names import layer_of, template_of
from tallystick.errors import BadInput, nearest, quoted
from tallystick.extras import needing

if TYPE_CHECKING:
    import pandas

# A config can state 10^12 layers. Their totals are computed, but single tensors are not listed.
MOST_LISTED = 20_000_000


@dataclass(frozen=True, repr=False)
class Ledger(Displayed):
    """Every tensor of one model. Immutable: `dataclasses.replace` makes a changed copy.

    Counts are in elements, sizes in bytes. `total` (unique parameters) counts each storage once;
    ``totals["by_name"]`` counts every name.

    A ledger is also a collection of its single tensors, buffers included, in the order in which
    the model prints them: ``len(ledger)`` is their number, ``for entry in ledger`` yields each
    `Entry`, ``ledger[name]`` is the one of that name, and ``name in ledger`` says whether there
    is one. Two ledgers are equal if all their facts are, the source and the notes among them.

    Raises:
        BadInput: from what lists single tensors, if there are more than 20 million.

    >>> import tallystick
    >>> ledger = tallystick.count("gpt2")
    >>> len(ledger), "lm_head.weight" in ledger, ledger == tallystick.count("gpt2")
    (149, True, True)
    >>> ledger["transformer.h.0.attn.c_attn.weight"].size  # 768 × 2304
    1769472
    >>> max(ledger, key=lambda entry: entry.unique).name
    'transformer.wte.weight'
    """

    rolled: tuple[Entry, ...]  # in printing order of the model, stacks rolled up
    _: KW_ONLY
    source: str  # the model that the user named
    kind: str  # preset | config | module, or the checkpoint format, such as safetensors
    notes: tuple[str, ...] = field(default=(), hash=False)
    model: ModelDescription = field(default=ModelDescription(), hash=False)  # frozen, so one default serves all ledgers
    evidence: Evidence[Ledger] = field(default=Evidence(), hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rolled", tuple(self.rolled))
        object.__setattr__(self, "notes", tuple(self.notes))

    def with_notes(self, *notes: str) -> Ledger:
        """Return a copy with `notes` appended.

        Args:
            *notes: lines to append.
        """
        return replace(self, notes=(*self.notes, *notes))

    def with_fetched(self, fetched: Fetched) -> Ledger:
        """Return a copy that records the bytes fetched of remote files, with a note on them.

        Args:
            fetched: bytes and requests.
        """
        return replace(self, evidence=replace(self.evidence, fetched=fetched)).with_notes(str(fetched))

    @cached_property
    def in_full(self) -> Ledger:
        """The ledger with the facts that take seconds to learn, which a plain count leaves out."""
        return self.evidence.ask() if self.evidence.ask else self

    @property
    def as_described(self) -> Ledger:
        """The ledger of the config that came with this model; without one, this ledger."""
        return self if self.evidence.described is None else self.evidence.described

    @property
    def filed(self) -> bool:
        """Whether the ledger was read from weight files and not predicted from a config."""
        return self.evidence.stored is not None and self.kind not in ("preset", "config")

    # -- shortcuts to the description and the evidence --------------------------------------------

    @property
    def architecture(self) -> str | None:
        """The model type, or the name of a live module's class."""
        return self.model.architecture

    @property
    def attending(self) -> tuple[Attending, ...]:
        """Attention of each layer, if the source states it."""
        return self.model.attending

    @property
    def recurring(self) -> tuple[Recurring, ...]:
        """Layers with a recurrent state, if the source states them."""
        return self.model.recurring

    @property
    def towers(self) -> tuple[str, ...]:
        """Name prefixes of vision and audio towers, whose tensors process no text tokens."""
        return self.model.towers

    @property
    def described(self) -> Ledger | None:
        """The ledger of the config that came with a checkpoint or a live module."""
        return self.evidence.described

    @property
    def mismatches(self) -> Mapping[str, Sequence[str]]:
        """Names on which tensors and config differ: ``missing``, ``unexpected``, ``misshaped``."""
        return self.evidence.mismatches

    @property
    def stored(self) -> tuple[int, int] | None:
        """Elements and bytes in files, buffers and duplicates included."""
        return self.evidence.stored

    @property
    def fetched(self) -> Fetched | None:
        """Bytes and requests spent on remote files."""
        return self.evidence.fetched

    # -- single tensors ---------------------------------------------------------------------------

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """Every single tensor, buffers included; unrolled once and cached."""
        if self._tensors_in_all > MOST_LISTED:
            raise BadInput(
                f"{self.source} has more than {MOST_LISTED:,} tensors, too many to list individually", code="too-large"
            )
        return tuple(in_printing_order(self.rolled))

    def __len__(self) -> int:
        """Return the number of single tensors, buffers included."""
        return self._tensors_in_all

    @property
    def _tensors_in_all(self) -> int:
        return sum(entry.copies for entry in self.rolled)

    def __bool__(self) -> bool:
        """Return True: a model without tensors is a model too."""
        return True

    def __iter__(self) -> Iterator[Entry]:
        """Yield every single tensor, buffers included, in printing order."""
        return iter(self.entries)

    def __contains__(self, tensor: object) -> bool:
        """Return whether a tensor has this name, or is this `Entry`."""
        if isinstance(tensor, Entry):
            return self.tensors.get(tensor.name) == tensor
        return tensor in self.tensors

    def __getitem__(self, name: str) -> Entry:
        """Return the tensor of this name.

        Raises:
            UnknownTensor: a `KeyError` that says which names are nearest.
        """
        if not isinstance(name, str):
            raise TypeError(f"a tensor is looked up by its name, not by {quoted(name)}; see Ledger.entries")
        if name not in self.tensors:
            raise UnknownTensor(f"{self.source} has no tensor {quoted(name)}{self._nearest(name)}")
        return self.tensors[name]

    def _nearest(self, name: str) -> str:
        """Return `"; nearest: transformer.wte.weight"` for ``wte``, or ``""``."""
        numbers = [int(number) for number in template_of(name)[1]]
        near = list(dict.fromkeys(_numbered(entry, numbers) for entry in self.rolled))  # of stacks, one layer
        around = [one for one in near if name and name in one]
        return f"; nearest: {', '.join(around[:3])}" if around else nearest(name, near)

    @cached_property
    def tensors(self) -> dict[str, Entry]:
        """Every single tensor by name; unrolled once and cached."""
        return {entry.name: entry for entry in self.entries}

    @cached_property
    def parameters(self) -> tuple[Entry, ...]:
        """The entries that are parameters, stacks rolled up."""
        return tuple(entry for entry in self.rolled if not entry.buffer)

    @cached_property
    def ties(self) -> tuple[Tie, ...]:
        """Groups of names with one storage, in order of first appearance."""
        return ties_of(self.parameters, self.evidence.relations, live=self.kind == "module")

    # -- totals -----------------------------------------------------------------------------------

    @cached_property
    def total(self) -> int:
        """Unique parameters: elements of distinct storage. The number that people mean."""
        return total_of(self.rolled)

    @property
    def totals(self) -> dict[str, int | None]:
        """Every total by its key. `active` is None if only a config could give it."""
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

    @named
    def by(self, what: str) -> dict[str, int]:
        """Return unique parameters by ``"role"``, ``"layer"``, ``"tensor"`` or ``"dtype"``.

        Roles come in the order of `ROLES`, other keys in printing order.

        Args:
            what: ``"role"``, ``"layer"``, ``"tensor"`` or ``"dtype"``.

        Raises:
            BadInput: if `what` is another word, or there are too many tensors to list.
        """
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

    @property
    def components(self) -> list[dict[str, Any]]:
        """Rows of the breakdown by role, as in `rows`."""
        return self.rows("role")

    @named
    def rows(self, what: str, depth: int | None = None) -> list[dict[str, Any]]:
        """Return the rows of a breakdown by `what`, as in `by`, with shares of the total.

        Rows of single tensors also hold shape, role, dtype and the tensor that shares storage.

        Args:
            what: as in `by`; or ``"module"``, the module tree with equal adjacent layers folded.
            depth: levels of the module tree; None shows all.
        """
        if what == "module":
            return module_rows(self.parameters, depth)
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

    # -- output -----------------------------------------------------------------------------------

    @named
    def to_dict(self, by: str | None = None, depth: int | None = None) -> dict[str, Any]:
        """Return the JSON of ``tallystick count``. Keys may be added, never renamed.

        Args:
            by: adds ``rows``, a breakdown as in `rows`.
            depth: as in `rows`.
        """
        out: dict[str, Any] = {
            "source": self.source,
            "kind": self.kind,
            "architecture": self.architecture,
            "totals": self.totals,
            "ties": [
                {"names": list(tie.names), "relation": tie.relation, "parameters": int(tie.parameters)}
                for tie in self.ties
            ],
            "components": self.components,
            "notes": list(self.notes),
        }
        if self.fetched is not None:
            out["fetched"] = self.fetched._asdict()
        if self.described is not None:
            out["mismatches"] = {kind: list(names) for kind, names in self.mismatches.items()}
        if by is not None:
            out["rows"] = self.rows(by, depth)
        return out

    @named
    def to_pandas(self, by: str = "tensor") -> pandas.DataFrame:
        """Return the rows of a breakdown as a data frame (needs pandas).

        Args:
            by: as `what` in `rows`.
        """
        with needing("to_pandas"):
            import pandas

        return pandas.DataFrame(self.rows(by))

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields for `pickle`, after learning all slow facts: no other process could."""
        return {one.name: getattr(self.in_full, one.name) for one in fields(self)}

    def __copy__(self) -> Ledger:
        """Return the ledger itself, since it is immutable."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Ledger:
        """Return the ledger itself, so that it reads the same live tensors."""
        return self


class UnknownTensor(BadInput, KeyError):
    """No tensor has the name that was looked up."""

    code = "unknown-name"


def _numbered(entry: Entry, numbers: Sequence[int]) -> str:
    """Return an entry's name with these layer and expert numbers, or its nearest own ones."""
    for place, axis in enumerate(entry.axes):
        number = numbers[place] if place < len(numbers) else 0
        entry = entry.numbered(int(min(max(number, axis.start), axis.start + axis.length - 1)))
    return entry.name


def _share(count: int, total: int) -> float:
    return round(count / total, 6) if total else 0.0
