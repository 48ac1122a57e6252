"""Options of a serving engine, by the names of `tallystick.serve`, and their limits."""

from __future__ import annotations

from dataclasses import dataclass

from tallystick.answers.workload import positive
from tallystick.errors import BadInput, quoted, shown

MOST_LAYERS = 1_000_000
AUTO = "auto"  # as many layers as fit
MOST_SLOTS = 10_000
STATES = ("auto", "float32", "bfloat16", "float16")  # dtypes of recurrent states
METHODS = ("mtp", "eagle", "eagle3", "draft_model", "ngram")
_WHOLE = (
    "tp", "pp", "dp", "max_model_len", "max_num_seqs", "max_num_batched_tokens", "block_size", "kv_cache_memory_bytes",
    "input_tokens", "output_tokens", "free_memory", "max_total_tokens", "num_gpu_blocks_override", "max_lora_rank",
    "max_mamba_cache_size", "draft_tokens",
)  # fmt: skip


@dataclass(frozen=True)
class Options:
    """Options, by the names of `tallystick.serve`. None is the engine's default."""

    engine_version: str | None = None
    dtype: str | None = None
    quantization: str | None = None
    kv_cache_dtype: str = "auto"
    value_cache_dtype: str | None = None
    tp: int = 1
    pp: int = 1
    dp: int = 1
    max_model_len: int | None = None
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    gpu_memory_utilization: float | None = None
    free_memory: int | None = None
    block_size: int | None = None
    enforce_eager: bool = False
    hybrid_kv_cache: bool = True
    kv_cache_memory_bytes: int | None = None
    max_total_tokens: int | None = None
    num_gpu_blocks_override: int | None = None
    max_mamba_cache_size: int | None = None
    cpu_offload_gb: float = 0
    gpu_layers: int | str | None = None
    cpu_moe_layers: int | None = None
    override_tensor: str | None = None
    tensor_split: str | None = None
    kv_offload: bool = True
    kv_unified: bool | None = None
    mmproj: bool = False
    speculative: str | None = None
    draft_tokens: int | None = None
    enable_prefix_caching: bool = False
    mamba_ssm_cache_dtype: str = "auto"
    language_model_only: bool = False
    skip_mm_profiling: bool = False
    allow_long_max_model_len: bool = False
    max_loras: int | None = None
    max_lora_rank: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None

    def __post_init__(self) -> None:
        for name in _WHOLE:
            if getattr(self, name) is not None:
                positive(name, getattr(self, name))
        if self.gpu_layers != AUTO:
            _within("gpu_layers", self.gpu_layers, MOST_LAYERS, f"layers, such as 20, or {AUTO}")
        _within("cpu_moe_layers", self.cpu_moe_layers, MOST_LAYERS, "layers, such as 20")
        _within("max_loras", self.max_loras, MOST_SLOTS, "adapters, such as 4")
        share = self.gpu_memory_utilization
        if share is not None and not (isinstance(share, int | float) and 0 < share <= 1):
            raise BadInput(f"gpu_memory_utilization is {shown(share)}, expected a share such as 0.9", code="bad-value")
        if not isinstance(self.cpu_offload_gb, int | float) or self.cpu_offload_gb < 0:
            raise BadInput(f"cpu_offload_gb is {shown(self.cpu_offload_gb)}, expected GiB, such as 4", code="bad-value")
        if self.mamba_ssm_cache_dtype not in STATES:
            raise BadInput(
                f"mamba_ssm_cache_dtype is {quoted(self.mamba_ssm_cache_dtype)}, expected one of {', '.join(STATES)}",
                code="unknown-name",
            )
        if self.speculative is not None and self.speculative not in METHODS:
            raise BadInput(
                f"speculative is {quoted(self.speculative)}, expected one of {', '.join(METHODS)}", code="unknown-name"
            )


def _within(name: str, given: object, most: int, expected: str) -> None:
    if given is not None and not (isinstance(given, int) and not isinstance(given, bool) and 0 <= given <= most):
        raise BadInput(f"{name} is {shown(given)}, expected {expected}", code="bad-value")
