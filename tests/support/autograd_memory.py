"""What training real models keeps: each tensor that autograd saves, and the most bytes that are
alive at once.
"""

from __future__ import annotations

import contextlib
import gc
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
import transformers
from torch import nn
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

transformers.logging.set_verbosity_error()


def build(config: dict[str, Any], *, attention: str = "flash", dtype: str = "float32") -> nn.Module:
    """The causal language model of a config, in training."""
    values = {"bos_token_id": 1, "eos_token_id": 2, **config}
    implementation = "sdpa" if attention == "flash" else attention
    made = transformers.AutoConfig.for_model(values.pop("model_type"), **values)
    model = transformers.AutoModelForCausalLM.from_config(made, attn_implementation=implementation)
    return model.to(getattr(torch, dtype)).train()


@contextlib.contextmanager
def as_on_cuda() -> Iterator[None]:
    """What torch does otherwise on a CPU: dropout keeps a mask of bools, and autocast has powers
    and softmax in float32.
    """
    dropout, power, square, softmax = nn.functional.dropout, torch.pow, torch.square, torch.softmax

    def masked(x: torch.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> torch.Tensor:
        return torch.native_dropout(x, p, training)[0] if training and p else x

    def wide(x: Any) -> Any:
        return x.float() if torch.is_autocast_enabled("cpu") and isinstance(x, torch.Tensor) else x

    nn.functional.dropout = masked
    torch.pow = lambda x, exponent: power(wide(x), exponent)
    torch.square = lambda x: torch.pow(x, 2)
    torch.softmax = lambda x, dim: softmax(wide(x), dim)
    try:
        yield
    finally:
        nn.functional.dropout, torch.pow, torch.square, torch.softmax = dropout, power, square, softmax


def local(tensor: torch.Tensor) -> torch.Tensor:
    """What this rank holds of a tensor."""
    return getattr(tensor, "_local_tensor", tensor)


def allocated(tensors: Iterable[torch.Tensor]) -> int:
    """Bytes of the storages behind what this rank holds, each once: the padding of shards too."""
    storages = [local(tensor).untyped_storage() for tensor in tensors]
    return sum({storage._cdata: storage.nbytes() for storage in storages}.values())


def most_allocated(run: Callable[[], Any]) -> int:
    """The most bytes that torch's allocator gave out while `run` ran, beyond those at its start."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
        run()
    events = [event for event in recorded.profiler.kineto_results.events() if event.name() == "[memory]"]
    most = now = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        now += event.nbytes()
        most = max(most, now)
    return most


def saved_bytes(model: nn.Module, batch: int, sequence: int, *, mixed: bool = False, recompute: bool = False) -> int:
    """Bytes of the storages kept for backward, each once, parameters and buffers left out.

    Where blocks are computed again, what they are called with beside their input is kept too, by
    reference.
    """
    own = {local(tensor).untyped_storage()._cdata for tensor in (*model.parameters(), *model.buffers())}
    kept: dict[int, torch.UntypedStorage] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storage = local(tensor).untyped_storage()
        if storage._cdata not in own:
            kept[storage._cdata] = storage  # held, so that no other storage takes its place
        return tensor

    if recompute:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # of another name, which the oldest transformers 5 lacks
            model.gradient_checkpointing_enable()
        for module in model.modules():
            if again := getattr(module, "_gradient_checkpointing_func", None):

                def noting(function: Any, *args: Any, again: Any = again) -> Any:
                    for leaf in tree_leaves(getattr(function, "keywords", {})):
                        if isinstance(leaf, torch.Tensor):
                            pack(leaf)
                    return again(function, *args)

                module._gradient_checkpointing_func = noting
    ids = torch.arange(batch * sequence).reshape(batch, sequence) % 50 + 3
    precision = torch.autocast("cpu", torch.bfloat16) if mixed else contextlib.nullcontext()
    with as_on_cuda(), torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor), precision:
        output = model(ids, labels=ids, use_cache=False)
    total = sum(storage.nbytes() for storage in kept.values())
    del output
    return total


class Alive(TorchDispatchMode):
    """Counts the bytes that operations make and nobody has let go, and their peak."""

    def __init__(self) -> None:
        super().__init__()
        self.now = self.peak = 0
        self._sizes: dict[int, int] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        given = {
            leaf.untyped_storage()._cdata for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)
        }
        for leaf in tree_leaves(out):
            if isinstance(leaf, torch.Tensor):
                storage = leaf.untyped_storage()
                if storage._cdata not in given and storage._cdata not in self._sizes:
                    self._sizes[storage._cdata] = storage.nbytes()
                    self.now += storage.nbytes()
                    weakref.finalize(storage, self._let_go, storage._cdata)
        self.peak = max(self.peak, self.now)
        return out

    def _let_go(self, key: int) -> None:
        self.now -= self._sizes.pop(key, 0)


# -- what is measured once, and committed ---------------------------------------------------------


def saved(config: dict[str, Any], batch: int, sequence: int, *, attention: str, how: str, recompute: str) -> int:
    """Bytes that autograd saves of a step in a dtype, or under autocast."""
    model = build(config, attention=attention, dtype="float32" if how == "autocast" else how)
    return saved_bytes(model, batch, sequence, mixed=how == "autocast", recompute=recompute == "full")


def most_in_backward(
    config: dict[str, Any], batch: int, sequence: int, *, attention: str, how: str, recompute: str = "none"
) -> int:
    """The most bytes alive in a step whose gradients are at hand already; of blocks computed again,
    in the backward pass.
    """
    model = build(config, attention=attention, dtype=how)
    if recompute == "full":
        model.gradient_checkpointing_enable()
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    ids = torch.arange(batch * sequence).reshape(batch, sequence) % 50 + 3
    with gc_paused(), as_on_cuda(), Alive() as alive:
        output = model(ids, labels=ids, use_cache=False)
        if recompute == "full":
            alive.peak = 0
        output.loss.backward()
    return alive.peak


def most_in_reading(config: dict[str, Any], batch: int, sequence: int, *, attention: str, how: str) -> int:
    """The most bytes alive while a prompt is read into a cache."""
    model = build(config, attention=attention, dtype=how).eval()
    ids = torch.arange(batch * sequence).reshape(batch, sequence) % 50 + 3
    with gc_paused(), torch.no_grad(), Alive() as alive:
        model(ids, use_cache=True, logits_to_keep=1)
    return alive.peak


@contextlib.contextmanager
def gc_paused() -> Iterator[None]:
    """No collection of cycles while bytes are counted: when it comes is chance."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
