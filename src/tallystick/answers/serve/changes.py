"""Options that would let an engine start or give it more room, by its own names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from tallystick.answers.serve.options import Options
from tallystick.answers.serve.plan import Change, Serve
from tallystick.errors import BadInput

LLAMA_CPP = "llama.cpp"
LARGEST_SHARE = {"vllm": 0.95, "sglang": 0.92}
MOST_RANKS = 64
# An option's name on each engine's command line.
_FLAGS = {
    "vllm": {
        "gpu_memory_utilization": "--gpu-memory-utilization", "max_num_seqs": "--max-num-seqs",
        "max_model_len": "--max-model-len", "kv_cache_dtype": "--kv-cache-dtype", "quantization": "--quantization",
        "tp": "--tensor-parallel-size", "pp": "--pipeline-parallel-size", "max_num_batched_tokens":
        "--max-num-batched-tokens", "enforce_eager": "--enforce-eager", "cpu_offload_gb": "--cpu-offload-gb",
    },
    "sglang": {
        "gpu_memory_utilization": "--mem-fraction-static", "max_model_len": "--context-length",
        "kv_cache_dtype": "--kv-cache-dtype", "quantization": "--quantization", "tp": "--tp-size",
        "pp": "--pp-size", "cpu_offload_gb": "--cpu-offload-gb", "max_num_batched_tokens": "--chunked-prefill-size",
    },
    LLAMA_CPP: {
        "max_model_len": "--ctx-size", "kv_cache_dtype": "--cache-type-k", "quantization": "--quantization",
        "gpu_layers": "--gpu-layers", "cpu_moe_layers": "--n-cpu-moe",
    },
}  # fmt: skip


def changes(asked: Options, answer: Serve, plan: Callable[[Options], Serve]) -> Iterator[Change]:
    """Yield the options that let it start, or that give more room, each alone.

    Args:
        asked: the options of now.
        answer: their plan.
        plan: plan other options.
    """
    for change in _CHANGES:
        options = change(asked, answer)
        if options is None:
            continue
        ((name, value),) = options.items()
        flag = _FLAGS[answer.engine].get(name)
        if flag is None:
            continue
        try:
            other = plan(replace(asked, **options))
            while name == "gpu_layers" and not other.starts and value > 1:  # a head on the host takes room too
                value -= max(1, value // 16)
                other = plan(replace(asked, gpu_layers=value))
        except BadInput:
            continue
        if other.starts and (not answer.starts or other.kv_cache_tokens > answer.kv_cache_tokens):
            text = flag if value is True else f"{flag} {value}"
            yield Change(text, other.kv_cache_tokens, other.max_concurrency)


_Changed = dict[str, Any] | None


def _more_memory(asked: Options, answer: Serve) -> _Changed:
    most = LARGEST_SHARE.get(answer.engine, 0)
    now = answer.options.get("gpu_memory_utilization") or asked.gpu_memory_utilization or 0.9
    return {"gpu_memory_utilization": most} if float(now) < most else None


def _fewer_requests(asked: Options, answer: Serve) -> _Changed:
    most = int(answer.options.get("max_num_seqs", 0))
    fewer = max(min(int(answer.max_concurrency) + 1 if answer.starts else 64, 256), 8)
    return {"max_num_seqs": fewer} if fewer < most else None


def _smaller_steps(asked: Options, answer: Serve) -> _Changed:
    return {"max_num_batched_tokens": 2048} if int(answer.options.get("max_num_batched_tokens", 0)) > 2048 else None


def _no_graphs(asked: Options, answer: Serve) -> _Changed:
    return {"enforce_eager": True} if not asked.enforce_eager else None


def _shorter(asked: Options, answer: Serve) -> _Changed:
    return {"max_model_len": answer.longest} if not answer.starts and answer.longest else None


def _eight_bit_cache(asked: Options, answer: Serve) -> _Changed:
    word = "q8_0" if answer.engine == LLAMA_CPP else "fp8_e4m3" if answer.engine == "sglang" else "fp8"
    return {"kv_cache_dtype": word} if asked.kv_cache_dtype == "auto" else None


def _fewer_bits(asked: Options, answer: Serve) -> _Changed:
    if answer.engine == LLAMA_CPP:
        return {"quantization": "q4_k_m"} if asked.quantization in (None, "f16", "q8_0") else None
    return {"quantization": "fp8"} if asked.quantization is None else None


def _more_ranks(asked: Options, answer: Serve) -> _Changed:
    return {"tp": 2 * asked.tp} if asked.tp < MOST_RANKS else None


def _more_stages(asked: Options, answer: Serve) -> _Changed:
    return {"pp": 2 * asked.pp} if asked.pp < MOST_RANKS and not answer.starts else None


def _offload(asked: Options, answer: Serve) -> _Changed:
    """Return the GiB of weights that must leave the device for one request's KV cache."""
    if answer.starts or not answer.weights_bytes:
        return None
    free = answer.device.memory - answer.activations_bytes - answer.other_bytes
    length = min(int(answer.options.get("max_model_len") or 1), 8192)
    lacking = answer.weights_bytes + length * answer.kv_cache_bytes_per_token - 0.9 * free
    gib = -(-int(lacking) // 2**30) + 1
    return {"cpu_offload_gb": gib} if 0 < gib * 2**30 < answer.weights_bytes else None


def _fewer_layers(asked: Options, answer: Serve) -> _Changed:
    """Return the most layers of llama.cpp that the device holds, by the average of its layers."""
    layers = answer.options.get("gpu_layers", 0)
    if answer.starts or answer.engine != LLAMA_CPP or not layers:
        return None
    free = answer.device.memory - answer.activations_bytes - answer.other_bytes
    each = (answer.weights_bytes + answer.kv_cache_bytes) / layers
    most = min(int(free / each), layers - 1) - 1
    return {"gpu_layers": most} if most > 0 else None


def _experts_on_host(asked: Options, answer: Serve) -> _Changed:
    """Return the fewest layers whose experts must be in the host's memory, by their average."""
    routed, layers = answer.experts_bytes, answer.options.get("gpu_layers", 0)
    if answer.starts or answer.engine != LLAMA_CPP or not routed or not layers:
        return None
    held = answer.weights_bytes + answer.kv_cache_bytes + answer.activations_bytes + answer.other_bytes
    each = routed / layers
    fewest = int((held - answer.device.memory) / each) + 2
    return {"cpu_moe_layers": min(fewest, layers)}


# Cheapest first.
_CHANGES: tuple[Callable[[Options, Any], _Changed], ...] = (
    _more_memory, _fewer_requests, _smaller_steps, _no_graphs, _shorter, _eight_bit_cache, _fewer_bits, _more_ranks,
    _more_stages, _experts_on_host, _fewer_layers, _offload,
)  # fmt: skip
