"""Options of the engines' command lines: those that cost memory, and those that take no value."""

from __future__ import annotations

from typing import Any

ON_OFF = {"on": False, "off": True, "auto": False, "1": False, "0": True, "enabled": False, "disabled": True}
# option -> (our name, how its value is read: a type, "length", a constant, or a table of words)
VLLM: dict[str, tuple[str, Any]] = {
    "--tensor-parallel-size": ("tp", int), "-tp": ("tp", int), "--pipeline-parallel-size": ("pp", int), "-pp": ("pp", int),
    "--data-parallel-size": ("dp", int), "-dp": ("dp", int),
    "--max-model-len": ("max_model_len", "length"), "--max-num-seqs": ("max_num_seqs", "length"),
    "--max-num-batched-tokens": ("max_num_batched_tokens", "length"),
    "--gpu-memory-utilization": ("gpu_memory_utilization", float), "--kv-cache-dtype": ("kv_cache_dtype", str),
    "--quantization": ("quantization", str), "-q": ("quantization", str), "--dtype": ("dtype", str),
    "--block-size": ("block_size", int), "--enforce-eager": ("enforce_eager", True),
    "--no-enforce-eager": ("enforce_eager", False), "--cpu-offload-gb": ("cpu_offload_gb", float),
    "--kv-cache-memory-bytes": ("kv_cache_memory_bytes", "length"), "--kv-cache-memory": ("kv_cache_memory_bytes", "length"),
    "--num-gpu-blocks-override": ("num_gpu_blocks_override", int),
    "--disable-hybrid-kv-cache-manager": ("hybrid_kv_cache", False),
    "--no-disable-hybrid-kv-cache-manager": ("hybrid_kv_cache", True), "--model": ("source", str),
    "--enable-lora": ("lora", True), "--max-loras": ("max_loras", int), "--max-lora-rank": ("max_lora_rank", int),
    "--speculative-config": ("speculative_config", "json"), "-sc": ("speculative_config", "json"),
    "--enable-prefix-caching": ("enable_prefix_caching", True), "--no-enable-prefix-caching": ("enable_prefix_caching", False),
    "--mamba-ssm-cache-dtype": ("mamba_ssm_cache_dtype", str), "--language-model-only": ("language_model_only", True),
    "--skip-mm-profiling": ("skip_mm_profiling", True), "--limit-mm-per-prompt": ("images", "keys"),
    "--rope-scaling": ("rope", "keys"), "--rope-parameters": ("rope", "keys"), "--hf-overrides": ("overridden", "keys"),
    "--speculative-model": ("draft", str), "--num-speculative-tokens": ("draft_tokens", int),
}  # fmt: skip
SGLANG: dict[str, tuple[str, Any]] = {
    "--model-path": ("source", str), "--model": ("source", str), "--tp": ("tp", int), "--tp-size": ("tp", int),
    "--tensor-parallel-size": ("tp", int), "--pp-size": ("pp", int), "--pipeline-parallel-size": ("pp", int),
    "--dp": ("dp", int), "--dp-size": ("dp", int), "--data-parallel-size": ("dp", int),
    "--enable-dp-attention": ("dp_attention", True),
    "--context-length": ("max_model_len", int), "--max-running-requests": ("max_num_seqs", int),
    "--chunked-prefill-size": ("max_num_batched_tokens", int), "--mem-fraction-static": ("gpu_memory_utilization", float),
    "--max-total-tokens": ("max_total_tokens", int), "--max-mamba-cache-size": ("max_mamba_cache_size", int),
    "--kv-cache-dtype": ("kv_cache_dtype", str), "--quantization": ("quantization", str), "--dtype": ("dtype", str),
    "--page-size": ("block_size", int), "--disable-cuda-graph": ("enforce_eager", True),
    "--disable-hybrid-swa-memory": ("hybrid_kv_cache", False), "--cpu-offload-gb": ("cpu_offload_gb", float),
    "--enable-lora": ("lora", True), "--lora-paths": ("lora_paths", "words"),
    "--max-loras-per-batch": ("max_loras", int), "--max-lora-rank": ("max_lora_rank", int),
    "--speculative-algorithm": ("speculative", str), "--speculative-algo": ("speculative", str),
    "--speculative-draft-model-path": ("draft", str), "--speculative-draft": ("draft", str),
    "--speculative-num-draft-tokens": ("draft_tokens", int),
}  # fmt: skip
LLAMA_CPP: dict[str, tuple[str, Any]] = {
    "-m": ("source", str), "--model": ("source", str), "-hf": ("source", str), "--hf-repo": ("source", str),
    "-hfr": ("source", str), "-mu": ("source", str), "--model-url": ("source", str), "-c": ("max_model_len", int), "--ctx-size": ("max_model_len", int),
    "-np": ("max_num_seqs", int), "--parallel": ("max_num_seqs", int),
    "-ub": ("max_num_batched_tokens", int), "--ubatch-size": ("max_num_batched_tokens", int), "-ngl": ("gpu_layers", int),
    "--gpu-layers": ("gpu_layers", int), "--n-gpu-layers": ("gpu_layers", int), "-ctk": ("kv_cache_dtype", str),
    "--cache-type-k": ("kv_cache_dtype", str), "-ctv": ("value_cache_dtype", str), "--cache-type-v": ("value_cache_dtype", str),
    "-nkvo": ("kv_offload", False), "--no-kv-offload": ("kv_offload", False), "-kvu": ("kv_unified", True),
    "--kv-unified": ("kv_unified", True), "-no-kvu": ("kv_unified", False), "--no-kv-unified": ("kv_unified", False),
    "-ts": ("tensor_split", str), "--tensor-split": ("tensor_split", str), "-dev": ("devices", str), "--device": ("devices", str),
    "-sm": ("split_mode", str), "--split-mode": ("split_mode", str), "-mm": ("projector", str), "--mmproj": ("projector", str),
    "-mmu": ("projector", str), "--mmproj-url": ("projector", str), "--no-mmproj": ("no_projector", True),
    "-fa": ("enforce_eager", ON_OFF), "--flash-attn": ("enforce_eager", ON_OFF), "--swa-full": ("hybrid_kv_cache", False),
    "-ncmoe": ("cpu_moe_layers", int), "--n-cpu-moe": ("cpu_moe_layers", int), "-cmoe": ("cpu_moe_layers", 10_000),
    "--cpu-moe": ("cpu_moe_layers", 10_000), "-ot": ("override", str), "--override-tensor": ("override", str),
}  # fmt: skip
ENGINES = {"vllm": VLLM, "sglang": SGLANG, "llama.cpp": LLAMA_CPP}

# Options that change the memory, and that no rule here knows.
COSTLY = {
    "vllm": (
        "--decode-context-parallel-size", "--kv-transfer-config", "--compilation-config", "-O",
        "--mamba-cache-mode", "--hf-overrides", "--rope-scaling", "--rope-parameters", "--num-scheduler-steps", "--kv-offloading-size",
    ),
    "sglang": (
        "--swa-full-tokens-ratio", "--cuda-graph-max-bs", "--enable-hierarchical-cache", "--mamba-full-memory-ratio",
        "--enable-two-batch-overlap", "--json-model-override-args",
    ),
    "llama.cpp": (
        "-md", "--model-draft", "--hf-repo-draft", "-hfd", "--spec-type", "--lora", "--rpc", "--override-kv",
    ),
}  # fmt: skip

# Options of a larger range that take no value. Of others, the next word is the value.
FLAGS = {
    "vllm": {
        "--trust-remote-code", "--enable-chunked-prefill",
        "--no-enable-chunked-prefill", "--enable-auto-tool-choice", "--disable-log-requests", "--disable-log-stats",
        "--enable-expert-parallel", "-ep", "--disable-custom-all-reduce", "--enable-reasoning", "--enable-log-requests",
        "--no-enable-log-requests", "--use-v2-block-manager", "--headless", "--disable-sliding-window", "--calculate-kv-scales",
        "--enable-eplb", "--async-scheduling", "--no-async-scheduling", "--disable-frontend-multiprocessing",
        "--enable-sleep-mode", "--enable-server-load-tracking", "--disable-uvicorn-access-log",
        "--enable-request-id-headers", "--enable-prompt-tokens-details", "--no-ray",
        "--worker-use-ray", "--disable-fastapi-docs", "--enable-lora-bias", "--fully-sharded-loras",
        "--enable-dbo", "--no-disable-log-requests", "--enable-force-include-usage", "--disable-mm-preprocessor-cache",
    },
    "sglang": {
        "--trust-remote-code", "--enable-metrics", "--enable-cache-report", "--disable-radix-cache", "--enable-mixed-chunk",
        "--enable-torch-compile", "--enable-p2p-check", "--log-requests", "--disable-overlap-schedule", "--is-embedding",
        "--enable-deepep-moe", "--enable-multimodal", "--disable-custom-all-reduce", "--enable-dp-lm-head",
        "--disable-cuda-graph-padding", "--skip-server-warmup", "--enable-flashinfer-mla", "--enable-ep-moe",
        "--disable-shared-experts-fusion", "--enable-memory-saver", "--allow-auto-truncate", "--disable-mla",
        "--disable-piecewise-cuda-graph", "--enable-hierarchical-cache", "--enable-two-batch-overlap", "--enable-symm-mem",
        "--disable-chunked-prefix-cache", "--enable-nccl-nvls", "--enable-eplb", "--grpc-mode", "--enable-flashinfer-allreduce-fusion",
        "--enable-deterministic-inference", "--skip-tokenizer-init", "--enable-nan-detection", "--enable-single-batch-overlap",
    },
    "llama.cpp": {
        "--jinja", "--no-mmap", "--mlock", "--no-warmup", "--embedding", "--embeddings", "--metrics", "--props", "--slots",
        "--cont-batching", "-cb", "--no-cont-batching", "-nocb", "--verbose", "-v", "--log-disable", "--no-webui",
        "--no-context-shift", "--context-shift", "-cnv", "-no-cnv", "--conversation", "--interactive", "-i", "--color", "--reranking",
        "--no-mmproj", "--mmproj-offload", "--no-mmproj-offload",
        "--special", "--no-display-prompt", "--no-perf", "--spm-infill", "--check-tensors", "--no-repack", "-nr", "--server", "-s",
        "--no-op-offload", "--ignore-eos", "--offline", "--multiline-input", "-mli", "--simple-io", "--in-prefix-bos",
        "--slot-prompt-similarity-off", "--no-slots", "--escape", "-e", "--no-escape", "--cpu-moe", "-cmoe", "--no-host",
    },
}  # fmt: skip
STARTS = {
    "vllm": (
        ("vllm", "serve"),
        ("-m", "vllm.entrypoints.openai.api_server"),
        ("-m", "vllm.entrypoints.api_server"),
        ("-m", "vllm.entrypoints.cli.main", "serve"),
        ("vllm", "bench", "throughput"),
        ("vllm", "bench", "latency"),
        ("vllm", "run-batch"),
    ),
    "sglang": (("-m", "sglang.launch_server"), ("sglang", "serve")),
    "llama.cpp": (
        ("llama-server",),
        ("llama-cli",),
        ("llama-simple",),
        ("llama-bench",),
        ("llama-completion",),
        ("llama-perplexity",),
        ("llama-mtmd-cli",),
        ("llama-embedding",),
        ("llama-run",),
        ("llama-speculative",),
        ("llama", "serve"),
        ("llama", "cli"),
    ),
}
OLD_NAMES = ("main", "server")  # of llama.cpp's programs, before June 2024
# Images whose entry point is the engine.
IMAGES = {
    "vllm": r"(?:\S+/)?vllm-openai(?:-rocm|-cpu)?(?:[:@]\S+)?",
    "llama.cpp": r"(?:\S+/)?llama\.cpp:(?:server|full)\S*",
}
TAGGED = {  # images whose tag is the engine's version
    "vllm": r"(?:\S+/)?vllm-openai:v?(\d+\.\d+(?:\.\d+)?)(?:[-+.]\S*)?",
    "sglang": r"(?:\S+/)?sglang:v?(\d+\.\d+(?:\.\d+(?:\.?post\d+)?)?)(?:-\S*)?",
}
# Environment variables of llama-server (`common/arg.cpp`), and the option of each.
LONGER = "VLLM_ALLOW_LONG_MAX_MODEL_LEN"  # vLLM's variable, which allows longer requests than the config's
VARIABLES = {
    "LLAMA_ARG_MODEL": "-m", "LLAMA_ARG_MODEL_URL": "-mu", "LLAMA_ARG_HF_REPO": "-hf", "LLAMA_ARG_CTX_SIZE": "-c", "LLAMA_ARG_N_PARALLEL": "-np",
    "LLAMA_ARG_UBATCH": "-ub", "LLAMA_ARG_N_GPU_LAYERS": "-ngl", "LLAMA_ARG_CACHE_TYPE_K": "-ctk",
    "LLAMA_ARG_CACHE_TYPE_V": "-ctv", "LLAMA_ARG_FLASH_ATTN": "-fa", "LLAMA_ARG_N_CPU_MOE": "-ncmoe",
}  # fmt: skip
