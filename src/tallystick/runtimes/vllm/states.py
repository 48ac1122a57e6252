"""Recurrent states in vLLM's pool: the width of their elements, and the pages of a request.

Shapes and dtypes are those of `MambaStateShapeCalculator` and `MambaStateDtypeCalculator` in
`vllm/model_executor/layers/mamba/mamba_utils.py`, pages those of `MambaSpec.max_memory_usage_bytes`
in `vllm/v1/kv_cache_interface.py`, read at 02d7108 and 001cabc.
"""

from __future__ import annotations

from tallystick.core.anatomy import Recurrence
from tallystick.runtimes.engines import Rank, Settings

# Types whose configs ask for a state in float32; others keep it in the model's dtype.
WIDE = (
    "qwen3_5", "qwen3_5_text", "qwen3_5_moe", "qwen3_5_moe_text", "nemotron_h", "kimi_linear",
)  # fmt: skip
WIDTHS = {"float32": 4, "float16": 2, "bfloat16": 2}


def state_bytes(keeps: Recurrence, rank: Rank, settings: Settings) -> int:
    """Return the bytes of one sequence's state in one recurrent layer.

    A drafted token lengthens the convolution's input by one (`num_spec`).
    """
    inputs = int(keeps.inputs) * (rank.kernel - 1 + settings.draft_tokens) // rank.kernel
    wide = 4 if rank.architecture in WIDE and keeps.wide else rank.width
    return inputs * rank.width + int(keeps.state) * WIDTHS.get(settings.state_dtype, wide)


def states_of_request(settings: Settings) -> int:
    """Return the states that one request keeps in a layer.

    One for each drafted token, its own, and with prefix caching the one before
    (``mamba_cache_mode``: align).
    """
    return 1 + settings.draft_tokens + settings.prefix_caching
