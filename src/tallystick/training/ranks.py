"""The ranks of a run: one process, or several started by ``torchrun``, with DDP or FSDP.

Each rank reads its share of every batch. With ``ddp`` each rank holds all weights and the
gradients are averaged. With ``fsdp`` each rank holds a slice of every tensor.
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
    """The number of ranks, this process's rank, and its device."""

    count: int
    rank: int
    device: torch.device

    @property
    def first(self) -> bool:
        """Whether this rank writes files that are written once."""
        return self.rank == 0

    def mean(self, value: Tensor) -> float:
        """Return the mean of a scalar over all ranks."""
        if self.count > 1:
            value = value.clone()
            distributed.all_reduce(value)
            value = value / self.count
        return float(value)

    def any(self, flag: bool) -> bool:
        """Return whether a flag is set on any rank."""
        if self.count == 1:
            return flag
        seen = torch.tensor(int(flag), device=self.device)
        distributed.all_reduce(seen)
        return bool(seen)

    def wait(self) -> None:
        """Wait for all ranks."""
        if self.count > 1:
            distributed.barrier()

    @contextmanager
    def together(self) -> Iterator[None]:
        """Let all ranks fail if one fails in the block, so that none waits for it.

        Raises:
            BadInput: on the ranks that did not fail themselves.
        """
        try:
            yield
        except Exception:
            self.any(True)
            raise
        if self.any(False):
            raise BadInput(f"rank {self.rank} stops because another rank failed")

    @contextmanager
    def first_alone(self) -> Iterator[None]:
        """Run the block on the first rank, and then on the others."""
        if not self.first:
            with self.together():
                pass
        with self.together():
            yield
        if self.first:
            with self.together():
                pass

    def wrapped(self, decoder: Decoder, sharding: str) -> nn.Module:
        """Return the decoder wrapped for training on all ranks.

        Args:
            decoder: changed in place by FSDP.
            sharding: ``"ddp"`` or ``"fsdp"``.
        """
        if self.count == 1:
            return decoder
        if sharding == "ddp":
            return nn.parallel.DistributedDataParallel(decoder)
        for layer in decoder.layers:
            fully_shard(layer)
        fully_shard(decoder)  # embedding, final norm and head in one FSDP unit: a tied pair is sharded once
        return decoder

    def synchronising(self, model: nn.Module, now: bool) -> AbstractContextManager[Any]:
        """Average gradients over ranks only in the last part of a batch, when `now` is true."""
        model = getattr(model, "_orig_mod", model)  # unwrap torch.compile
        if self.count == 1:
            return nullcontext()
        if isinstance(model, FSDPModule):
            model.set_requires_gradient_sync(now)
        elif not now and isinstance(model, nn.parallel.DistributedDataParallel):
            held: AbstractContextManager[None] = model.no_sync()
            return held
        return nullcontext()

    def settle(self, decoder: nn.Module) -> None:
        """Reshard FSDP modules: after a forward without backward some stay gathered."""
        for module in decoder.modules():
            if isinstance(module, FSDPModule):
                module.reshard()

    def share(self, rows: int) -> slice:
        """Return this rank's slice of a batch's rows."""
        each = rows // self.count
        return slice(self.rank * each, (self.rank + 1) * each)


def ranks_of(device: str, *, batch: int) -> Ranks:
    """Return the ranks that ``torchrun`` started, with the process group joined; or one rank.

    Args:
        device: device name, or ``auto``.
        batch: sequences that the ranks share; a multiple of their number.

    Raises:
        BadInput: if the device is not available, or the ranks do not divide `batch`.
    """
    where = device_of(device)
    joined = distributed.is_initialized()
    count = distributed.get_world_size() if joined else int(os.environ.get("WORLD_SIZE", "1"))
    if batch % count:
        raise BadInput(
            f"{count} ranks cannot share {batch} sequences equally: batch / accumulate must be a multiple of the ranks",
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
    """Return a device by name; ``auto`` is CUDA if available, else the CPU.

    Raises:
        BadInput: if PyTorch does not have the device here.
    """
    if word == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(word)
        torch.ones(1, device=device).item()  # the meta device holds no values
    except (RuntimeError, AssertionError):
        found = [f"cuda:{number}" for number in range(torch.cuda.device_count())]
        raise BadInput(
            f"no device {quoted(word)}: PyTorch {torch.__version__} has {', '.join(['cpu', *found])} here",
            code="unknown-name",
        ) from None
    return device
