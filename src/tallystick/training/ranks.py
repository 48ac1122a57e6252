"""The processes that train together: one, unless ``torchrun`` started more.

Each rank reads its share of every batch. Data parallel (``ddp``) each holds all weights and they average their
gradients; fully sharded (``fsdp``) each holds a slice of every tensor.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.distributed.fsdp import FSDPModule, fully_shard

from tallystick.errors import BadInput, quoted
from tallystick.models.decoder import Decoder


@dataclass(frozen=True)
class Ranks:
    """How many there are, which of them this one is, and where it computes."""

    count: int
    rank: int
    device: torch.device

    @property
    def first(self) -> bool:
        """Whether this one writes what is written once."""
        return self.rank == 0

    def mean(self, value: Tensor) -> float:
        """Of a scalar, over all ranks."""
        if self.count > 1:
            value = value.clone()
            distributed.all_reduce(value)
            value = value / self.count
        return float(value)

    def any(self, flag: bool) -> bool:
        """Whether it holds on any rank."""
        if self.count == 1:
            return flag
        seen = torch.tensor(int(flag), device=self.device)
        distributed.all_reduce(seen)
        return bool(seen)

    def wait(self) -> None:
        """Until all ranks are here."""
        if self.count > 1:
            distributed.barrier()

    @contextmanager
    def together(self) -> Iterator[None]:
        """What fails on one rank fails on all: none waits for a rank that has ended.

        Raises:
            BadInput: on the ranks on which nothing failed.
        """
        try:
            yield
        except Exception:
            self.any(True)
            raise
        if self.any(False):
            raise BadInput(f"rank {self.rank} ends, as another rank has failed")

    @contextmanager
    def first_alone(self) -> Iterator[None]:
        """The first rank does it, and the others when it is done."""
        if not self.first:
            with self.together():
                pass
        with self.together():
            yield
        if self.first:
            with self.together():
                pass

    def wrapped(self, decoder: Decoder, sharding: str) -> nn.Module:
        """The decoder as all ranks call it together."""
        if self.count == 1:
            return decoder
        if sharding == "ddp":
            return nn.parallel.DistributedDataParallel(decoder)
        for layer in decoder.layers:
            fully_shard(layer)
        fully_shard(decoder)  # embedding, final norm and head in one unit: a tied pair is sharded once
        return decoder

    def synchronising(self, model: nn.Module, now: bool) -> AbstractContextManager[Any]:
        """Average the gradients of a part of the batch with the other ranks' only where it is the last one."""
        model = getattr(model, "_orig_mod", model)  # that which torch.compile wraps
        if self.count == 1:
            return nullcontext()
        if isinstance(model, FSDPModule):
            model.set_requires_gradient_sync(now)
        elif not now and isinstance(model, nn.parallel.DistributedDataParallel):
            held: AbstractContextManager[None] = model.no_sync()
            return held
        return nullcontext()

    def settle(self, decoder: nn.Module) -> None:
        """Have every rank hold its slices alone again: a forward pass without a backward one leaves some gathered."""
        for module in decoder.modules():
            if isinstance(module, FSDPModule):
                module.reshard()

    def share(self, rows: int) -> slice:
        """The rows of a batch that are this rank's."""
        each = rows // self.count
        return slice(self.rank * each, (self.rank + 1) * each)


def ranks_of(device: str, *, batch: int) -> Ranks:
    """Those that ``torchrun`` started, joined; or this process alone.

    Raises:
        BadInput: where the device is not there, or the ranks do not divide `batch`.
    """
    where = device_of(device)
    joined = distributed.is_initialized()
    count = distributed.get_world_size() if joined else int(os.environ.get("WORLD_SIZE", "1"))
    if batch % count:
        raise BadInput(
            f"{count} ranks cannot share {batch} sequences equally: batch / accumulate must be a multiple of them",
            code="indivisible",
        )
    if count == 1:
        return Ranks(1, 0, where)
    if where.type == "cuda":
        where = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
        torch.cuda.set_device(where)
    if not joined:
        distributed.init_process_group("nccl" if where.type == "cuda" else "gloo")
    return Ranks(count, distributed.get_rank(), where)


def device_of(word: str) -> torch.device:
    """``auto`` is the first accelerator, or the CPU."""
    if word == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(word)
        torch.ones(1, device=device).item()  # meta has devices, and no values
    except (RuntimeError, AssertionError):
        found = [f"cuda:{number}" for number in range(torch.cuda.device_count())]
        raise BadInput(
            f"device {quoted(word)} is not there: PyTorch {torch.__version__} has {', '.join(['cpu', *found])} here",
            code="unknown-name",
        ) from None
    return device
