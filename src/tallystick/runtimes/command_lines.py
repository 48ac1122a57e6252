"""Read the command line of an engine: which engine, which model, and the options that cost memory.

>>> pasted(["vllm", "serve", "org/name", "-tp", "2", "--max-model-len", "32k"])[:3]
('vllm', 'org/name', {'tp': 2, 'max_model_len': 32000})
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from tallystick.errors import BadInput, quoted


class Pasted(NamedTuple):
    """What a command line says."""

    engine: str
    source: str
    options: dict[str, Any]  # by the names of `tallystick.serve`
    unmodelled: tuple[str, ...]  # options that change the memory, and are not modelled


# option -> (our name, how its value is read)
_VLLM = {
    "--tensor-parallel-size": ("tp", int), "-tp": ("tp", int), "--pipeline-parallel-size": ("pp", int), "-pp": ("pp", int),
    "--max-model-len": ("max_model_len", "length"), "--max-num-seqs": ("max_num_seqs", "length"),
    "--max-num-batched-tokens": ("max_num_batched_tokens", "length"),
    "--gpu-memory-utilization": ("gpu_memory_utilization", float), "--kv-cache-dtype": ("kv_cache_dtype", str),
    "--quantization": ("quantization", str), "-q": ("quantization", str), "--dtype": ("dtype", str),
    "--block-size": ("block_size", int), "--enforce-eager": ("enforce_eager", True),
    "--no-enforce-eager": ("enforce_eager", False), "--cpu-offload-gb": ("cpu_offload_gb", float),
    "--kv-cache-memory-bytes": ("kv_cache_memory_bytes", "length"), "--kv-cache-memory": ("kv_cache_memory_bytes", "length"),
    "--disable-hybrid-kv-cache-manager": ("hybrid_kv_cache", False),
    "--no-disable-hybrid-kv-cache-manager": ("hybrid_kv_cache", True), "--model": ("source", str),
}  # fmt: skip
_SGLANG = {
    "--model-path": ("source", str), "--model": ("source", str), "--tp": ("tp", int), "--tp-size": ("tp", int),
    "--tensor-parallel-size": ("tp", int), "--pp-size": ("pp", int), "--pipeline-parallel-size": ("pp", int),
    "--context-length": ("max_model_len", int), "--max-running-requests": ("max_num_seqs", int),
    "--chunked-prefill-size": ("max_num_batched_tokens", int), "--mem-fraction-static": ("gpu_memory_utilization", float),
    "--kv-cache-dtype": ("kv_cache_dtype", str), "--quantization": ("quantization", str), "--dtype": ("dtype", str),
    "--page-size": ("block_size", int), "--disable-cuda-graph": ("enforce_eager", True),
    "--cpu-offload-gb": ("cpu_offload_gb", float),
}  # fmt: skip
_LLAMA_CPP = {
    "-m": ("source", str), "--model": ("source", str), "-hf": ("source", str), "--hf-repo": ("source", str), "-c": ("max_model_len", int),
    "--ctx-size": ("max_model_len", int), "-np": ("max_num_seqs", int), "--parallel": ("max_num_seqs", int),
    "-ub": ("max_num_batched_tokens", int), "--ubatch-size": ("max_num_batched_tokens", int), "-ngl": ("gpu_layers", int),
    "--gpu-layers": ("gpu_layers", int), "--n-gpu-layers": ("gpu_layers", int), "-ctk": ("kv_cache_dtype", str),
    "--cache-type-k": ("kv_cache_dtype", str), "-ctv": ("kv_cache_dtype", str), "--cache-type-v": ("kv_cache_dtype", str),
    "-fa": ("enforce_eager", {"on": False, "off": True, "auto": False, "1": False, "0": True}),
    "--flash-attn": ("enforce_eager", {"on": False, "off": True, "auto": False, "1": False, "0": True}),
    "--swa-full": ("hybrid_kv_cache", False),
}  # fmt: skip
_ENGINES: dict[str, dict[str, tuple[str, Any]]] = {"vllm": _VLLM, "sglang": _SGLANG, "llama.cpp": _LLAMA_CPP}
# Options that change the memory, and that no rule here knows.
_COSTLY = {
    "vllm": (
        "--speculative-config", "--enable-lora", "--data-parallel-size", "--decode-context-parallel-size",
        "--limit-mm-per-prompt", "--kv-transfer-config", "--compilation-config", "-O", "--mamba-cache-mode",
        "--num-gpu-blocks-override", "--hf-overrides", "--num-scheduler-steps",
    ),
    "sglang": (
        "--speculative-algorithm", "--speculative-draft-model-path", "--enable-dp-attention", "--dp", "--dp-size",
        "--data-parallel-size", "--lora-paths", "--enable-lora", "--max-total-tokens", "--swa-full-tokens-ratio",
        "--cuda-graph-max-bs", "--ep", "--ep-size", "--enable-hierarchical-cache",
    ),
    "llama.cpp": (
        "-md", "--model-draft", "--mmproj", "-ot", "--override-tensor", "--cpu-moe", "-cmoe", "--n-cpu-moe", "-ncmoe", "-sm",
        "--split-mode", "-ts", "--tensor-split", "--lora", "--no-kv-offload", "-nkvo", "--fit",
    ),
}  # fmt: skip
_STARTS = {
    "vllm": (("vllm", "serve"), ("-m", "vllm.entrypoints.openai.api_server"), ("-m", "vllm.entrypoints.api_server")),
    "sglang": (("-m", "sglang.launch_server"), ("sglang", "serve")),
    "llama.cpp": (("llama-server",), ("llama-cli",), ("llama-simple",)),
}
_LENGTH = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)([kmgtKMGT]?)")
_POWERS = " kmgt"


def pasted(words: Sequence[str]) -> Pasted:
    """Return what an engine's command line says.

    Args:
        words: the command line, such as ``["vllm", "serve", "org/name"]``. Environment variables
            and launchers before the engine's own words are skipped.

    Raises:
        BadInput: if no engine's command is found, no model is named, or a value cannot be read.
    """
    engine, rest = _command(list(words))
    known, costly = _ENGINES[engine], _COSTLY[engine]
    options: dict[str, Any] = {}
    unmodelled, source, place = [], "", 0
    while place < len(rest):
        word, equals, value = rest[place].partition("=") if rest[place].startswith("-") else (rest[place], "", "")
        place += 1
        if not word.startswith("-"):
            source = source or word
            continue
        word = f"--{word[2:].replace('_', '-')}" if word.startswith("--") else word
        if word in costly:
            unmodelled.append(word)
        if word not in known:
            if not equals and place < len(rest) and not rest[place].startswith("-"):
                place += 1  # the value of an option that costs no memory
            continue
        name, how = known[word]
        if isinstance(how, bool):
            options[name] = how
            continue
        if not equals:
            if place == len(rest):
                raise BadInput(f"{word} has no value", code="bad-value")
            value, place = rest[place], place + 1
        options[name] = _value(word, value, how)
    source = str(options.pop("source", "")) or source
    if not source:
        raise BadInput(f"the {engine} command names no model", code="bad-value")
    return Pasted(engine, source, options, tuple(unmodelled))


def _command(words: list[str]) -> tuple[str, list[str]]:
    """Return the engine, and the words behind its command."""
    for engine, starts in _STARTS.items():
        for start in starts:
            for place in range(len(words) - len(start) + 1):
                found = [word.rpartition("/")[2] for word in words[place : place + len(start)]]
                if found == list(start):
                    return engine, words[place + len(start) :]
    known = ", ".join(" ".join(start) for starts in _STARTS.values() for start in starts)
    raise BadInput(f"{quoted(' '.join(words[:3]))} does not start an engine; known: {known}", code="unknown-name")


def _value(option: str, text: str, how: Any) -> Any:
    try:
        if isinstance(how, dict):
            return how[text.lower()]
        return _length(text) if how == "length" else how(text)
    except (KeyError, ValueError):
        raise BadInput(f"{option} is {quoted(text)}, expected {_expected(how)}", code="bad-value") from None


def _expected(how: Any) -> str:
    if isinstance(how, dict):
        return ", ".join(how)
    return {int: "a whole number", float: "a number", "length": "a number such as 32768 or 32k"}[how]


def _length(text: str) -> int:
    """Parse a number as vLLM does: 32k is 32,000, and 32K is 32,768 (`human_readable_int`)."""
    match = _LENGTH.fullmatch(text)
    if match is None:
        raise ValueError(text)
    step = 1024 if match[2].isupper() else 1000
    return int(float(match[1]) * step ** _POWERS.index(match[2].lower() or " "))
