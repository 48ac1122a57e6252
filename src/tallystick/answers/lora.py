"""LoRA adapters: low-rank A and B next to each frozen matrix.

Hu et al. 2021, "LoRA", section 4.1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tallystick.answers.workload import positive
from tallystick.core.entries import EMBEDDING_ROLES, Entry
from tallystick.core.ledger import Ledger
from tallystick.errors import BadInput, nearest, quoted, shown

# Roles that PEFT's target_modules="all-linear" leaves out: the head, and modules other than
# nn.Linear.
_NOT_LINEAR = EMBEDDING_ROLES | {"norm", "router", "conv"}
_MARK = ".lora_"  # in the name of every adapter


def with_adapters(ledger: Ledger, rank: int, targets: Sequence[str] = ()) -> list[Entry]:
    """Return a model's parameters, all frozen, and the trained adapters next to them.

    Adapters are in float32, as in PEFT, for weights of any dtype.

    Args:
        ledger: the model.
        rank: rank of the adapters.
        targets: last parts of the names of the modules to adapt, such as ``q_proj``. By default
            every linear layer but the head, like PEFT's ``target_modules="all-linear"``.

    Raises:
        BadInput: for a rank below 1, and for a target that the model does not have.
    """
    positive("the rank of LoRA", rank)
    if isinstance(targets, str):
        targets = (targets,)
    if not isinstance(targets, Sequence) or not all(isinstance(target, str) for target in targets):
        raise BadInput(f"targets is {shown(targets)}, expected names of modules such as q_proj", code="bad-value")
    known = {_module(entry) for entry in ledger.parameters if _is_linear(entry)}
    if not known:
        raise BadInput(f"{ledger.source} has no linear layer to adapt", code="no-answer")
    for target in targets:
        if target not in known:
            raise BadInput(
                f"{ledger.source} has no linear layer called {quoted(target)}{nearest(target, known)}",
                code="unknown-name",
            )
    entries: list[Entry] = []
    for entry in ledger.parameters:
        entries.append(entry._replace(trainable=False))
        if _is_linear(entry) and (not targets or _module(entry) in targets):
            entries += _adapters(entry, rank)
    return entries


def is_adapter(entry: Entry) -> bool:
    """Return whether the entry is an adapter from `with_adapters`."""
    return _MARK in entry.name


def _module(entry: Entry) -> str:
    """Return `q_proj` for ``model.layers.{}.self_attn.q_proj.weight``."""
    return entry.called.split(".")[-2]


def _is_linear(entry: Entry) -> bool:
    return entry.role not in _NOT_LINEAR and len(entry.shape) == 2 and entry.called.endswith(".weight")


def _adapters(entry: Entry, rank: int) -> Iterator[Entry]:
    """Yield A (rank, inputs) and B (outputs, rank)."""
    outputs, inputs = entry.shape  # GPT-2's matrices are transposed: A and B swap, and the total is equal
    for letter, shape in (("A", (rank, inputs)), ("B", (outputs, rank))):
        name = f"{entry.called.removesuffix('.weight')}{_MARK}{letter}.weight"
        size = int(shape[0]) * int(shape[1])
        yield entry._replace(
            name=name,
            shape=shape,
            dtype="float32",
            storage=name,
            unique=size,
            identity="",
            trainable=True,
            packed=None,
        )
