"""The public functions that say what a model costs: `memory`, `fit` and `compute`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import signature
from typing import TYPE_CHECKING, Any, TypeAlias

from tallystick.arguments import named
from tallystick.questions import ledger_of

if TYPE_CHECKING:
    from tallystick.answers.compute.compute import Compute
    from tallystick.answers.devices import Device
    from tallystick.answers.fit import Fit
    from tallystick.answers.fit_all import FitAll
    from tallystick.answers.memory.answer import Memory

    AnyDevice: TypeAlias = str | int | Mapping[str, Any] | Device


@named
def memory(
    source: Any,
    /,
    *,
    part: str | None = None,
    real: bool = False,
    device: AnyDevice | None = None,
    mode: str = "inference",
    dtype: str | None = None,
    batch: int = 1,
    sequence: int | None = None,
    kv_dtype: str | None = None,
    optimizer: str = "adamw",
    precision: str = "pure",
    attention: str = "flash",
    recompute: str = "none",
    loss: str = "full",
    lora: int | None = None,
    targets: str | Sequence[str] = (),
    dp: int = 1,
    zero: int = 0,
    tp: int = 1,
    pp: int = 1,
    ep: int = 1,
    **overrides: Any,
) -> Memory:
    """Return the memory needed for inference or training, line by line.

    Args:
        source: as for `count`.
        part: as for `count`.
        real: as for `count`.
        device: the device that must hold it: a name such as ``"h100"``, bytes such as ``"24GB"``,
            ``"auto"`` for this machine's, or a mapping of figures (see `device_of`).
        mode: ``"inference"`` or ``"training"``.
        dtype: of the weights; by default each tensor's own. Packed weights then count as stored,
            with scales.
        batch: sequences per pass.
        sequence: tokens per sequence; default: the number of learned positions, or 4,096.
        kv_dtype: of the KV cache; default: the dtype of the weights, or 16 bits if they are packed.
        optimizer: ``"adamw"``, ``"adamw-fused"``, ``"adam8bit"``, ``"sgd"``, ``"sgd-momentum"``,
            ``"adafactor"``, ``"muon"`` or ``"none"``.
        precision: ``"pure"``, everything in the weights' dtype; ``"mixed"``, float32 weights and
            bfloat16 products, as in torch.autocast; ``"master"``, 16-bit weights and gradients, and
            a float32 copy in the optimizer.
        attention: ``"flash"``, a kernel that saves no attention scores, or ``"eager"``.
        recompute: activation checkpointing: ``"none"``, ``"selective"`` (of attention), or
            ``"full"`` (all but the inputs of layers).
        loss: ``"full"``, from all logits at the same time, or ``"chunked"``.
        lora: rank of the adapters, the only trained weights; None trains all weights.
        targets: modules that get an adapter, such as ``"q_proj"``; by default every linear layer
            but the head.
        dp: data parallel ranks, each with its own `batch` sequences.
        zero: states that these ranks share: 1 optimizer, 2 also gradients, 3 also weights (FSDP).
        tp: tensor parallel ranks.
        pp: pipeline stages.
        ep: expert parallel ranks, a subset of the data parallel ones.
        **overrides: as for `count`. For a config key with the name of an option, such as
            ``dtype``, pass what `count` returns.

    Returns:
        The memory of one rank in bytes: with pipeline stages, of the busiest stage.

    Raises:
        BadInput: if the source cannot be read, for an invalid word or number, and for options that
            contradict each other.

    >>> memory("gpt2", mode="training", batch=8)
    <Memory of gpt2, training: 16.8 GB at start of backward>
    >>> memory("palm-540b", dtype="float16").weights_bytes
    1080708562944
    """
    from tallystick.answers.devices import device_of
    from tallystick.answers.memory.memory import memory as measure

    return measure(
        ledger_of(source, part, real, overrides),
        device=None if device is None else device_of(device),
        mode=mode,
        dtype=dtype,
        batch=batch,
        sequence=sequence,
        kv_dtype=kv_dtype,
        optimizer=optimizer,
        precision=precision,
        attention=attention,
        recompute=recompute,
        loss=loss,
        lora=lora,
        targets=targets,
        dp=dp,
        zero=zero,
        tp=tp,
        pp=pp,
        ep=ep,
    )


@named
def fit(
    source: Any,
    /,
    device: AnyDevice,
    *,
    part: str | None = None,
    real: bool = False,
    mode: str = "inference",
    dtype: str | None = None,
    batch: int = 1,
    sequence: int | None = None,
    kv_dtype: str | None = None,
    optimizer: str = "adamw",
    precision: str = "pure",
    attention: str = "flash",
    recompute: str = "none",
    loss: str = "full",
    lora: int | None = None,
    targets: str | Sequence[str] = (),
    dp: int = 1,
    zero: int = 0,
    tp: int = 1,
    pp: int = 1,
    ep: int = 1,
    **overrides: Any,
) -> Fit:
    """Return whether a model fits on a device, the largest batch, and the changes that would help.

    Args:
        source: as for `count`.
        device: as for `memory`.
        part: as for `count`.
        real: as for `count`.
        mode: this and all further options are those of `memory`.
        dtype: as for `memory`.
        batch: as for `memory`.
        sequence: as for `memory`.
        kv_dtype: as for `memory`.
        optimizer: as for `memory`.
        precision: as for `memory`.
        attention: as for `memory`.
        recompute: as for `memory`.
        loss: as for `memory`.
        lora: as for `memory`.
        targets: as for `memory`.
        dp: as for `memory`.
        zero: as for `memory`.
        tp: as for `memory`.
        pp: as for `memory`.
        ep: as for `memory`.
        **overrides: as for `memory`.

    Returns:
        Whether it fits; the largest batch, sequence and dtype that fit; and changes that help.

    Raises:
        BadInput: as `memory`, and for an unknown device.

    >>> fit("llama-3-8b", "rtx4090", sequence=8192).largest_batch
    4
    >>> fit("llama-3-70b", "h100").changes
    ('weights quantised to int8',)
    """
    from tallystick.answers.devices import device_of
    from tallystick.answers.fit import fit as answer

    return answer(
        ledger_of(source, part, real, overrides),
        device_of(device),
        mode=mode,
        dtype=dtype,
        batch=batch,
        sequence=sequence,
        kv_dtype=kv_dtype,
        optimizer=optimizer,
        precision=precision,
        attention=attention,
        recompute=recompute,
        loss=loss,
        lora=lora,
        targets=targets,
        dp=dp,
        zero=zero,
        tp=tp,
        pp=pp,
        ep=ep,
    )


@named
def fit_all(source: Any, /, dtype: str | Sequence[str] = (), **options: Any) -> FitAll:
    """Return on which devices, and in which dtypes, a model fits: ``tallystick fit`` without one.

    Args:
        source: as for `count`.
        dtype: one or several dtypes of the weights; by default the usual ones of the mode.
        **options: the other options of `memory` but the device, and config overrides.

    Returns:
        For each known device and dtype: whether it fits, the largest batch and longest sequence.

    Raises:
        BadInput: as `memory`.

    >>> [cell.device for cell in fit_all("llama-3-8b", "bf16").devices if cell.fits][0]
    'l4'
    """
    from tallystick.answers.fit_all import fit_all as answer

    part, real = options.pop("part", None), options.pop("real", False)
    of_memory = signature(memory).parameters.keys() - {"device"}
    of_run = {name: options.pop(name) for name in of_memory & options.keys()}
    return answer(ledger_of(source, part, real, options), (dtype,) if isinstance(dtype, str) else dtype, **of_run)


@named
def compute(
    source: Any,
    /,
    *,
    part: str | None = None,
    real: bool = False,
    device: AnyDevice | None = None,
    batch: int = 1,
    sequence: int | None = None,
    mode: str = "training",
    tokens: int | str | None = None,
    devices: int | None = None,
    mfu: float | None = None,
    tokens_per_second: float | None = None,
    **overrides: Any,
) -> Compute:
    """Return the FLOPs of a model's matrix products by part, and the time that they take.

    Args:
        source: as for `count`.
        part: as for `count`.
        real: as for `count`.
        device: the device that computes, as for `memory`.
        batch: sequences in a batch.
        sequence: tokens in a sequence; by default the number of learned positions, or 4,096.
        mode: of the run: ``"training"``, both passes, or ``"inference"``, the forward pass.
        tokens: tokens of the whole run, a number or a string such as ``"300B"``.
        devices: how many such devices share the run; default: one.
        mfu: share of the device's peak FLOP/s that the run reaches, such as 0.4.
        tokens_per_second: tokens per second on one device, in place of `mfu`.
        **overrides: as for `memory`.

    Returns:
        The FLOPs of one pass over `batch` sequences; with a device or a number of tokens, its
        `rate`.

    Raises:
        BadInput: if the source cannot be read, or an option makes no sense.

    >>> compute("gpt2", sequence=1024).forward_flops
    291648307200
    >>> rate = compute("gpt2", device="h100", tokens="300B", mfu=0.4).rate
    >>> round(rate.seconds / 86400, 1)  # days
    7.5
    """
    from tallystick.answers.compute.compute import compute as reckon
    from tallystick.answers.devices import device_of

    return reckon(
        ledger_of(source, part, real, overrides),
        device=None if device is None else device_of(device, any_memory=True),
        batch=batch,
        sequence=sequence,
        mode=mode,
        tokens=tokens,
        devices=devices,
        mfu=mfu,
        tokens_per_second=tokens_per_second,
    )
