"""How many ranks a model is placed on, in each kind of parallelism, and whether they divide it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tallystick.answers.memory.pipeline import layers_of, stacked
from tallystick.core.entries import Entry
from tallystick.core.ledger import Ledger
from tallystick.errors import BadInput, shown


class Shards(NamedTuple):
    """Number of ranks in each kind of parallelism."""

    dp: int = 1  # data parallel: each rank has its own sequences
    zero: int = 0  # states that data parallel ranks share: 1 optimizer, 2 also gradients, 3 also weights (FSDP)
    tp: int = 1  # tensor parallel: each rank holds a part of every matrix
    pp: int = 1  # pipeline parallel: each rank holds a part of the layers
    ep: int = 1  # expert parallel: each rank holds a part of the experts

    @property
    def data(self) -> int:
        """Size of the data parallel group; expert parallel ranks are a subset of it."""
        return max(self.dp, self.ep)

    @property
    def ranks(self) -> int:
        """Total number of ranks."""
        return self.data * self.tp * self.pp


def checked(shards: Shards, ledger: Ledger) -> Shards:
    """Return `shards` unchanged if the model can be sharded this way.

    Args:
        shards: the requested parallelism.
        ledger: the whole model.

    Raises:
        BadInput: for an invalid number, and for heads, layers or experts that the ranks do not
            divide.
    """
    for what, number in shards._asdict().items():
        least, most = (0, 3) if what == "zero" else (1, 1_000_000)
        if isinstance(number, bool) or not isinstance(number, int) or not least <= number <= most:
            raise BadInput(
                f"{what} is {shown(number)}, expected {'0 to 3' if what == 'zero' else 'a positive integer'}",
                code="bad-value",
            )
    if shards.zero and shards.data == 1:
        raise BadInput(
            f"zero {shards.zero} needs dp: give the number of data-parallel ranks", code="conflicting-options"
        )
    for one in ledger.model.attending if shards.tp > 1 else ():
        for what, heads in (("query heads", one.heads.queries), ("key and value heads", one.heads.keys)):
            if int(heads) % shards.tp:
                raise BadInput(
                    f"{ledger.source} has {int(heads):,} {what}, which {shards.tp} tensor parallel ranks do not divide",
                    code="indivisible",
                )
    if shards.pp > 1:
        layers = layers_of(map(stacked, ledger.parameters))
        if not layers or layers % shards.pp:
            raise BadInput(
                f"{ledger.source} has {layers:,} layers, which {shards.pp} pipeline stages do not divide",
                code="indivisible",
            )
    if shards.ep > 1:
        _check_experts(experts_of(map(stacked, ledger.parameters)), shards, ledger.source)
    if shards.dp > 1 and shards.dp % shards.ep:
        raise BadInput(
            f"{shards.ep} expert parallel ranks are some of the data parallel ones: dp {shards.dp} must be a multiple of ep",
            code="indivisible",
        )
    return shards


def _check_experts(experts: int, shards: Shards, source: str) -> None:
    """Raise `BadInput` unless the expert parallel ranks divide the experts of a layer."""
    if not experts or shards.ep > experts:
        raise BadInput(
            f"{source} has {experts or 'no'} experts, too few for {shards.ep} expert parallel ranks",
            code="indivisible",
        )
    if experts % shards.ep:
        raise BadInput(
            f"{source} has {experts} experts, which {shards.ep} expert parallel ranks do not divide",
            code="indivisible",
        )


def experts_of(entries: Iterable[Entry]) -> int:
    """Return the number of routed experts of a layer."""
    counts = [
        int(sum(entry.axes[-1])) if len(entry.axes) > 1 else int(entry.shape[0])
        for entry in entries
        if entry.role == "experts"
    ]
    return max(counts, default=0)
