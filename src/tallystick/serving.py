"""The public functions that plan a serving engine: `serve` and `fit_engine`."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import signature
from typing import TYPE_CHECKING, Any

from tallystick.arguments import named
from tallystick.questions import ledger_of

if TYPE_CHECKING:
    from tallystick.answers.serve.everywhere import FitEngine
    from tallystick.answers.serve.plan import Serve
    from tallystick.costs import AnyDevice


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
    value_cache_dtype: str | None = None,
    tp: int = 1,
    pp: int = 1,
    dp: int = 1,
    max_model_len: int | None = None,
    max_num_seqs: int | None = None,
    max_num_batched_tokens: int | None = None,
    gpu_memory_utilization: float | None = None,
    free_memory: int | None = None,
    block_size: int | None = None,
    enforce_eager: bool = False,
    hybrid_kv_cache: bool = True,
    kv_cache_memory_bytes: int | None = None,
    max_total_tokens: int | None = None,
    num_gpu_blocks_override: int | None = None,
    max_mamba_cache_size: int | None = None,
    cpu_offload_gb: float = 0,
    gpu_layers: int | str | None = None,
    cpu_moe_layers: int | None = None,
    override_tensor: str | None = None,
    tensor_split: str | None = None,
    kv_offload: bool = True,
    kv_unified: bool | None = None,
    mmproj: bool = False,
    speculative: str | None = None,
    draft: Any = None,
    draft_tokens: int | None = None,
    enable_prefix_caching: bool = False,
    mamba_ssm_cache_dtype: str = "auto",
    language_model_only: bool = False,
    skip_mm_profiling: bool = False,
    allow_long_max_model_len: bool = False,
    max_loras: int | None = None,
    max_lora_rank: int | None = None,
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
        value_cache_dtype: of the values alone (llama.cpp); None is `kv_cache_dtype`.
        tp: tensor parallel ranks.
        pp: pipeline stages, which need not be equal; for llama.cpp the devices, which share the
            layers.
        dp: data-parallel replicas, which divide the experts; of SGLang, of its attention alone.
        max_model_len: tokens of the longest request; None is the config's. For llama.cpp the
            context that all requests share.
        max_num_seqs: most requests at the same time; None is the engine's default for the device.
        max_num_batched_tokens: most tokens of a step; None is the engine's default.
        gpu_memory_utilization: share of the device for the engine; None is its default. For SGLang
            its static share, of the memory that is free before the weights are loaded.
        free_memory: bytes that are free on the device before the engine starts; None is all but
            what its driver takes.
        block_size: tokens of a KV cache page; None is the engine's default.
        enforce_eager: capture no CUDA graphs; for llama.cpp no FlashAttention.
        hybrid_kv_cache: whether windows free the pages that they left.
        kv_cache_memory_bytes: bytes of the pool, instead of what the engine measures.
        max_total_tokens: most tokens of the pool (SGLang).
        num_gpu_blocks_override: pages of the pool, whatever the memory (vLLM).
        max_mamba_cache_size: slots of recurrent states (SGLang).
        cpu_offload_gb: GiB of the weights that stay in the host's memory.
        gpu_layers: layers on the device, the head included (llama.cpp); None is all, ``"auto"`` as
            many as fit, by llama.cpp's ``--fit``.
        cpu_moe_layers: first layers whose experts stay in the host's memory (llama.cpp).
        override_tensor: patterns of tensors, and where they are held (llama.cpp), such as
            ``"exps=CPU"``; several with commas.
        tensor_split: each device's part of the layers (llama.cpp), such as ``"3,1"``.
        kv_offload: whether the KV cache is where its layer is, or in the host's memory (llama.cpp).
        kv_unified: whether all slots share the cells (llama.cpp); None is the engine's default.
        mmproj: whether the towers for images and audio are loaded (llama.cpp).
        speculative: method of speculative decoding: ``"mtp"``, ``"eagle"``, ``"eagle3"``,
            ``"draft_model"`` or ``"ngram"``.
        draft: its draft model, as for `count`; without it, a head of the usual sizes.
        draft_tokens: tokens that it drafts at once.
        enable_prefix_caching: keep one recurrent state more for each request (vLLM).
        mamba_ssm_cache_dtype: ``"float32"``, ``"bfloat16"`` or ``"float16"``, the dtype of
            recurrent states (vLLM); ``"auto"`` is the config's.
        language_model_only: load no vision or audio tower (vLLM).
        skip_mm_profiling: load the towers, but profile no images (vLLM).
        allow_long_max_model_len: allow requests longer than the model's positions (vLLM).
        max_loras: LoRA adapters in memory at the same time, each on all linear layers.
        max_lora_rank: rank of the largest adapter; None is 16.
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
        value_cache_dtype=value_cache_dtype,
        tp=tp,
        pp=pp,
        dp=dp,
        max_model_len=max_model_len,
        max_num_seqs=max_num_seqs,
        max_num_batched_tokens=max_num_batched_tokens,
        gpu_memory_utilization=gpu_memory_utilization,
        free_memory=free_memory,
        block_size=block_size,
        enforce_eager=enforce_eager,
        hybrid_kv_cache=hybrid_kv_cache,
        kv_cache_memory_bytes=kv_cache_memory_bytes,
        max_total_tokens=max_total_tokens,
        num_gpu_blocks_override=num_gpu_blocks_override,
        max_mamba_cache_size=max_mamba_cache_size,
        cpu_offload_gb=cpu_offload_gb,
        gpu_layers=gpu_layers,
        cpu_moe_layers=cpu_moe_layers,
        override_tensor=override_tensor,
        tensor_split=tensor_split,
        kv_offload=kv_offload,
        kv_unified=kv_unified,
        mmproj=mmproj,
        speculative=speculative,
        draft=None if draft is None else ledger_of(draft, None, False, {}),
        draft_tokens=draft_tokens,
        enable_prefix_caching=enable_prefix_caching,
        mamba_ssm_cache_dtype=mamba_ssm_cache_dtype,
        language_model_only=language_model_only,
        skip_mm_profiling=skip_mm_profiling,
        allow_long_max_model_len=allow_long_max_model_len,
        max_loras=max_loras,
        max_lora_rank=max_lora_rank,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
    )


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
    if of_run.get("draft") is not None:
        of_run["draft"] = ledger_of(of_run["draft"], None, False, {})
    on = [device_of(one) for one in devices] or None
    return answer(ledger_of(source, part, real, options), engine=engine, devices=on, **of_run)
