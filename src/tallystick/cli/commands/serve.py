"""``tallystick serve``: plan how an engine will serve a model, from options or its command line."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from tallystick import count, serve
from tallystick.answers.serve.options import METHODS
from tallystick.cli.options import (
    DEVICE_HELP,
    add_command,
    add_part,
    add_source,
    device_given,
    layers,
    length,
    settings_of,
    share,
    whole,
)
from tallystick.cli.output import add_exit_code, add_format, print_answer, print_json
from tallystick.core.ledger import Ledger
from tallystick.core.units import parse_size
from tallystick.errors import BadInput, quoted
from tallystick.presets.hub_names import preset_of
from tallystick.runtimes.command_lines import pasted

EXAMPLES = """\
examples:
  tallystick serve llama-3.1-8b --device h100 --max-model-len 8k
  tallystick serve qwen3-32b --device h100 --tp 2 --kv-cache-dtype fp8
  tallystick serve gpt-oss-20b --device l40s --input 4k --output 1k --explain
  tallystick serve qwen3-8b --engine llama.cpp --device 12GB --dtype q4_k_m
  tallystick serve --device l40s -- vllm serve Qwen/Qwen3-8B -tp 2
  tallystick serve --device h200 --from compose.yaml
"""
_MISSING = ("not-found", "unreachable", "missing-package")
_LENGTHS = ("max_model_len", "max_num_batched_tokens", "input_tokens", "output_tokens", "max_total_tokens")
_GIVEN = (
    "engine_version", "dtype", "quantization", "kv_cache_dtype", "tp", "pp", "dp", "max_num_seqs", "block_size",
    "gpu_memory_utilization", "cpu_offload_gb", "kv_cache_memory_bytes", "gpu_layers", "cpu_moe_layers", "draft",
    "value_cache_dtype", "tensor_split", "override_tensor",
    "num_gpu_blocks_override", "max_mamba_cache_size", "speculative", "draft_tokens", "max_loras", "max_lora_rank",
    "mamba_ssm_cache_dtype",
)  # fmt: skip
_SWITCHES = (
    "enforce_eager",
    "enable_prefix_caching",
    "language_model_only",
    "skip_mm_profiling",
    "allow_long_max_model_len",
    "kv_unified",
    "mmproj",
)
MOST_TEXT = 1_000_000  # bytes of a file that --from reads


def add(commands: Any) -> None:
    """Add the command to the parser."""
    command = add_command(commands, "serve", EXAMPLES)
    add_source(command, without="the model of the pasted command")
    command.add_argument(
        "words", metavar="-- COMMAND", nargs="*", help="an engine's command line: -- vllm serve org/name"
    )
    add_part(command)
    add = command.add_argument
    add("--engine", help="vllm (default), sglang or llama.cpp")
    add("--engine-version", metavar="N", help="such as 0.19; engines hold other bytes in other versions")
    add("--device", metavar="NAME", help=f"one of the devices (required): {DEVICE_HELP}")
    add("--tp", "--tensor-parallel-size", dest="tp", type=whole, metavar="N", help="tensor-parallel size")
    add("--pp", "--pipeline-parallel-size", dest="pp", type=whole, metavar="N", help="number of pipeline stages")
    add("--dp", "--data-parallel-size", dest="dp", type=whole, metavar="N", help="replicas that share the experts")
    add("--max-model-len", metavar="N", help="tokens of the longest request, 32768 or 32k (default: the config's)")
    add("--max-num-seqs", type=whole, metavar="N", help="most requests at the same time (default: the engine's)")
    add("--max-num-batched-tokens", metavar="N", help="most tokens of a step (default: the engine's)")
    add("--gpu-memory-utilization", type=share, metavar="SHARE", help="share of the device for the engine, such as 0.9")
    add("--dtype", help="dtype of weights and activations (default: the checkpoint's; float32 is halved)")
    add("--quantization", metavar="NAME", help="such as fp8, awq or bitsandbytes; a GGUF file type, such as q4_k_m")
    add("--kv-cache-dtype", help="dtype of the KV cache: auto (default), fp8, bfloat16; of llama.cpp f16, q8_0, q4_0")
    add("--gpu-layers", "--ngl", "-ngl", type=layers, metavar="N", help="layers on the device, or auto (llama.cpp)")
    add("--block-size", type=whole, metavar="N", help="tokens of a KV cache page (default: the engine's)")
    add("--enforce-eager", action="store_true", help="capture no CUDA graphs; of llama.cpp, use no FlashAttention")
    add(
        "--disable-hybrid-kv-cache-manager",
        action="store_true",
        help="layers with a sliding window keep every token",
    )
    add("--kv-cache-memory-bytes", type=whole, metavar="N", help="bytes of the KV cache, instead of what is left")
    add("--cpu-offload-gb", type=float, metavar="GIB", help="GiB of the weights that stay in the host's memory")
    add("--free-memory", metavar="SIZE", help="free on the device before the start, such as 22.4GiB (default: all)")
    add("--max-total-tokens", metavar="N", help="most tokens of the pool (sglang)")
    add("--num-gpu-blocks-override", type=whole, metavar="N", help="pages of the pool, whatever the memory (vllm)")
    add("--max-mamba-cache-size", type=whole, metavar="N", help="slots of recurrent states (sglang)")
    add("--mamba-ssm-cache-dtype", metavar="DTYPE", help="dtype of recurrent states: float32, bfloat16 (vllm)")
    add("--enable-prefix-caching", action="store_true", help="keep one recurrent state more per request (vllm)")
    add("--language-model-only", action="store_true", help="load no vision or audio tower (vllm)")
    add("--skip-mm-profiling", action="store_true", help="profile no images (vllm)")
    add("--allow-long-max-model-len", action="store_true", help="allow requests longer than the config says (vllm)")
    add("--n-cpu-moe", dest="cpu_moe_layers", type=whole, metavar="N", help="layers whose experts stay on the host")
    _add_of_llama_cpp(add)
    add("--speculative", metavar="METHOD", help=f"speculative decoding: {', '.join(METHODS)}")
    add("--draft", metavar="MODEL", help="its draft model (default: a head of the usual sizes)")
    add("--draft-tokens", type=whole, metavar="N", help="tokens that it drafts at once")
    add("--max-loras", type=whole, metavar="N", help="LoRA adapters in memory at the same time")
    add("--max-lora-rank", type=whole, metavar="N", help="rank of the largest adapter (default: 16)")
    add(
        "--from",
        dest="script",
        metavar="FILE",
        help="read the engine's command from a script or compose file; - is stdin",
    )
    add("--input", dest="input_tokens", metavar="N", help="input tokens of a request: say how many run at once")
    add("--output", dest="output_tokens", metavar="N", help="output tokens of a request")
    add("--explain", action="store_true", help="show the formula and source of each line")
    add_exit_code(command, "the engine does not start", default=True)
    add_format(command)
    command.set_defaults(run=_run)


def _add_of_llama_cpp(add: Any) -> None:
    """Add the options of llama.cpp alone."""
    add("--cache-type-v", dest="value_cache_dtype", metavar="TYPE", help="dtype of the cached values (llama.cpp)")
    add("--tensor-split", metavar="N,N", help="each device's part of the layers, such as 3,1 (llama.cpp)")
    add("--override-tensor", "-ot", metavar="P=TYPE", help="where tensors are held, such as exps=CPU (llama.cpp)")
    add("--no-kv-offload", action="store_true", help="hold the KV cache in the host's memory (llama.cpp)")
    add("--kv-unified", action="store_true", help="all slots share the context (llama.cpp)")
    add("--mmproj", action="store_true", help="load the towers for images and audio too (llama.cpp)")


def _run(options: argparse.Namespace) -> int:
    engine, source, given, notes = _asked(options)
    if options.device is None:
        raise BadInput("name the device with --device, such as h100 (tallystick devices lists them)", code="bad-value")
    ledger, given = _ledger(source, options, given)
    given, more = _draft(given)
    notes += more
    answer = serve(ledger.with_notes(*notes), engine=engine, device=device_given(options.device), **given)
    if options.format == "json":
        print_json(answer.to_dict())
    else:
        from tallystick.report.serve import show_serve

        print_answer(options.format, show_serve, answer, explain=options.explain)
    return int(options.exit_code and not answer.starts)


def _asked(options: argparse.Namespace) -> tuple[str, str, dict[str, Any], list[str]]:
    """Return the engine, the model, the options of `serve`, and notes: given, then pasted."""
    given = {name: getattr(options, name) for name in _GIVEN if getattr(options, name) is not None}
    for name in _LENGTHS:
        if getattr(options, name) is not None:
            given[name] = length(getattr(options, name))
    given |= {name: True for name in _SWITCHES if getattr(options, name)}
    if options.disable_hybrid_kv_cache_manager:
        given["hybrid_kv_cache"] = False
    if options.no_kv_offload:
        given["kv_offload"] = False
    if options.free_memory is not None:
        given["free_memory"] = _size(options.free_memory)
    if options.source is None and options.script is None:
        raise BadInput("name a model, or paste an engine's command behind --", code="bad-value")
    words = [*([options.source] if options.source is not None else []), *options.words]
    if options.script is not None and words:
        raise BadInput("--from names the command: give no other model or command", code="conflicting-options")
    if options.script is None and len(words) == 1 and not any(map(str.isspace, words[0])):
        return options.engine or "vllm", words[0], given, []
    line = pasted([_text(options.script)] if options.script is not None else words)
    if options.engine not in (None, line.engine):
        raise BadInput(f"--engine is {options.engine}, but the command is {line.engine}'s", code="conflicting-options")
    notes = [f"not modelled: {', '.join(line.unmodelled)}"] if line.unmodelled else []
    return line.engine, line.source, {**line.options, **given}, notes


def _draft(given: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the options, with the draft's preset or without the draft if it is not fetched."""
    name = given.get("draft")
    if name is None:
        return given, []
    try:
        count(name)
    except BadInput as error:
        found = preset_of(name) if error.code in _MISSING and "/" in name else None
        if found is None and (error.code not in _MISSING or given.get("speculative") != "draft_model"):
            raise
        kept = {key: value for key, value in given.items() if key not in ("draft", "speculative", "draft_tokens")}
        if found is None:
            return kept, [f"not modelled: the draft model {name}, which is not fetched"]
        return {**given, "draft": found.preset}, [f"{name} is not fetched: counted as the preset {found.preset}"]
    return given, []


def _size(text: str) -> int:
    size = parse_size(text)
    if not size:
        raise BadInput(f"--free-memory is {quoted(text)}, expected a size such as 22.4GiB", code="bad-value")
    return size


def _text(path: str) -> str:
    """Return the text of a script, or of stdin."""
    try:
        if path == "-":
            return sys.stdin.read(MOST_TEXT)
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(MOST_TEXT)
    except OSError as error:
        raise BadInput(f"{quoted(path)} cannot be read: {error.strerror or error}", code="not-found") from error


def _ledger(source: str, options: argparse.Namespace, given: dict[str, Any]) -> tuple[Ledger, dict[str, Any]]:
    """Return the model; if the hub is not reached, the preset of that name."""
    settings = {"part": options.part, **settings_of(options.settings)}
    try:
        return count(source, **settings), given
    except BadInput as error:
        named = "/" in source or source.lower().endswith(".gguf")
        found = preset_of(source) if error.code in _MISSING and named else None
        if found is None:
            raise
    said = f"{source} is not fetched: counted as the preset {found.preset}"
    said += "".join(
        f", {key} = {'none' if value is None else format(value, ',')}" for key, value in found.settings.items()
    )
    if found.quantization and "quantization" not in given:
        given, said = {**given, "quantization": found.quantization}, f"{said} in {found.quantization}"
    return count(found.preset, **{**found.settings, **settings}).with_notes(said), given
