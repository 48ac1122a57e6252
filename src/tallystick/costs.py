"""The public functions that say what a model costs: `memory`, `fit`, `serve` and `compute`."""

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
    from tallystick.answers.memory.memory import Memory
    from tallystick.answers.serve.everywhere import FitEngine
    from tallystick.answers.serve.serve import Serve

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
    """Return whether a model fits on a device, the largest batch, and what would make it fit.

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
        Whether it fits, the largest batch, sequence and dtype that fit, and what would make it fit.

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
def serve(
    source: Any,
    /,
    *,
    engine: str,
    device: AnyDevice,
    engine_version: str | None = None,
    part: str | None = None,
    real: bool = False,
    dtype: str | None = None,
    quantization: str | None = None,
    kv_cache_dtype: str = "auto",
    tp: int = 1,
    pp: int = 1,
    max_model_len: int | None = None,
    max_num_seqs: int | None = None,
    max_num_batched_tokens: int | None = None,
    gpu_memory_utilization: float | None = None,
    block_size: int | None = None,
    enforce_eager: bool = False,
    hybrid_kv_cache: bool = True,
    kv_cache_memory_bytes: int | None = None,
    cpu_offload_gb: float = 0,
    gpu_layers: int | None = None,
    input_tokens: int | None = None,
    output_tokens: int | None = None,
    **overrides: Any,
) -> Serve:
    """Return what a serving engine will hold and log at its start, and whether it starts.

    Args:
        source: as for `count`.
        engine: ``"vllm"``, ``"sglang"`` or ``"llama.cpp"``.
        device: one of the devices, as for `memory`; every rank has one.
        engine_version: such as ``"0.19"``; by default the newest that public logs judge.
        part: as for `count`.
        real: as for `count`.
        dtype: of weights and activations, as the engine's ``--dtype``; None is ``"auto"``.
        quantization: as the engine's ``--quantization``, such as ``"fp8"`` or ``"awq"``; for
            llama.cpp a file type, such as ``"q4_k_m"``.
        kv_cache_dtype: ``"auto"``, or ``"fp8"``; for llama.cpp ``"q8_0"`` and others.
        tp: tensor parallel ranks.
        pp: pipeline stages, which need not be equal.
        max_model_len: tokens of the longest request; None is the config's. For llama.cpp the
            context that all requests share.
        max_num_seqs: most requests at the same time; None is the engine's default for the device.
        max_num_batched_tokens: most tokens of a step; None is the engine's default.
        gpu_memory_utilization: share of the device for the engine; None is its default. For SGLang
            its static share, of the memory that is free before the weights are loaded.
        block_size: tokens of a KV cache page; None is the engine's default.
        enforce_eager: capture no CUDA graphs; for llama.cpp no FlashAttention.
        hybrid_kv_cache: whether windows free the pages that they left.
        kv_cache_memory_bytes: bytes of the pool, instead of what the engine measures.
        cpu_offload_gb: GiB of the weights that stay in the host's memory.
        gpu_layers: layers on the device, the head included (llama.cpp); None is all.
        input_tokens: of a request, for `Serve.requests`.
        output_tokens: of a request.
        **overrides: as for `memory`.

    Returns:
        Weights, activations and KV cache of one device in bytes, the lines of the log, what limits
        the requests, and what would help.

    Raises:
        BadInput: if the source cannot be read or does not describe its attention, for an unknown
            engine, version or format, and for an impossible number.

    >>> answer = serve("qwen3-8b", engine="vllm", device="h100", max_model_len=8192)
    >>> answer.lines[-1]
    'Maximum concurrency for 8,192 tokens per request: 47.61x'
    >>> serve("llama-3-70b", engine="vllm", device="h100", tp=1).starts
    False
    """
    from tallystick.answers.devices import device_of
    from tallystick.answers.serve.serve import serve as plan

    return plan(
        ledger_of(source, part, real, overrides),
        engine=engine,
        device=device_of(device),
        engine_version=engine_version,
        dtype=dtype,
        quantization=quantization,
        kv_cache_dtype=kv_cache_dtype,
        tp=tp,
        pp=pp,
        max_model_len=max_model_len,
        max_num_seqs=max_num_seqs,
        max_num_batched_tokens=max_num_batched_tokens,
        gpu_memory_utilization=gpu_memory_utilization,
        block_size=block_size,
        enforce_eager=enforce_eager,
        hybrid_kv_cache=hybrid_kv_cache,
        kv_cache_memory_bytes=kv_cache_memory_bytes,
        cpu_offload_gb=cpu_offload_gb,
        gpu_layers=gpu_layers,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
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
def fit_engine(source: Any, /, engine: str, devices: Sequence[Any] = (), **options: Any) -> FitEngine:
    """Return on which devices an engine starts: ``tallystick fit --engine`` without a device.

    Args:
        source: as for `count`.
        engine: as for `serve`.
        devices: as for `serve`, each; by default all GPUs that are known by name.
        **options: the other options of `serve`, and config overrides.

    Returns:
        For each device: whether it starts, with how many tensor parallel ranks it would, the tokens
        of its KV cache, the requests that it holds, and a bound on its tokens per second.

    Raises:
        BadInput: as `serve`.

    >>> answer = fit_engine("llama-3.1-8b", "vllm", ["l4", "h100"], max_model_len=65536)
    >>> [(one.device, one.starts, one.tp) for one in answer.devices]
    [('l4', False, 2), ('h100', True, 1)]
    """
    from tallystick.answers.devices import device_of
    from tallystick.answers.serve.everywhere import fit_engine as answer

    part, real = options.pop("part", None), options.pop("real", False)
    of_serve = signature(serve).parameters.keys() - {"device", "engine"}
    of_run = {name: options.pop(name) for name in of_serve & options.keys()}
    on = [device_of(one) for one in devices] or None
    return answer(ledger_of(source, part, real, options), engine=engine, devices=on, **of_run)


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
