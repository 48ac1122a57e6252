"""Vision towers in vLLM's profile run: the largest images that a step may have, and their memory.

`profile_run` in `vllm/v1/worker/gpu_model_runner.py` encodes as many of the largest images as a
step's budget holds, and keeps their pixels and embeddings while it runs the language model. The
budget is a step's tokens, or those of one image if they are more (`compute_mm_encoder_budget` in
`vllm/v1/core/encoder_cache_manager.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from tallystick.runtimes.engines import Rank

MOST = 16_384  # tokens of the largest image of Qwen's processors: their max_pixels
WIDTH = 2  # bytes of an element: the towers run in 16 bits
# Hidden states of a patch alive next to its pixels and the MLP's two tensors: Qwen3.5-9B on 0.19.
ALIVE = 3.5


class Image(NamedTuple):
    """The largest image that a model's processor makes."""

    tokens: int  # that the language model reads
    patches: int  # that the tower reads


class Profiled(NamedTuple):
    """What the profile run's images take on one device."""

    images: int
    peak: int  # bytes while the tower runs
    kept: int  # bytes of its pixels and embeddings while the language model runs


def profiled(rank: Rank, tokens: int, tp: int) -> Profiled | None:
    """Return the profile run's images; None if the tower has no rule here.

    Args:
        rank: the first stage's device.
        tokens: of a step.
        tp: tensor parallel ranks, which divide the tower's MLP.
    """
    sizes = dict(rank.vision)
    rule = _RULES.get(rank.architecture)
    if rule is None or not sizes or not rank.first:
        return None
    image, hidden = rule(sizes), sizes.get("embed_dim") or sizes["hidden_size"]
    inner = sizes.get("intermediate_size") or hidden * sizes.get("mlp_ratio", 4)
    number = max(max(tokens, image.tokens) // image.tokens, 1)
    pixels = number * image.patches * _pixels(sizes) * WIDTH
    states = round(number * image.patches * (2 * -(-inner // tp) + ALIVE * hidden) * WIDTH)
    embeddings = number * image.tokens * rank.hidden * rank.width
    return Profiled(number, pixels + states, pixels + embeddings)


def _pixels(sizes: Mapping[str, int]) -> int:
    """Return the elements of a patch of an image."""
    channels = sizes.get("in_channels") or sizes.get("num_channels") or sizes.get("in_chans") or 3
    return channels * sizes.get("temporal_patch_size", 1) * sizes.get("patch_size", 14) ** 2


def _qwen(sizes: Mapping[str, int]) -> Image:
    """`get_image_size_with_most_features` in `vllm/model_executor/models/qwen2_vl.py`."""
    return Image(MOST, MOST * sizes.get("spatial_merge_size", 2) ** 2)


def _gemma3(sizes: Mapping[str, int]) -> Image:
    """One crop of an image: `mm_tokens_per_image` in `vllm/model_executor/models/gemma3_mm.py`."""
    return Image(256, (sizes.get("image_size", 896) // sizes.get("patch_size", 14)) ** 2)


def _mistral3(sizes: Mapping[str, int]) -> Image:
    """A square image of the largest size, with an end for each row of tokens (`pixtral.py`)."""
    merged = sizes.get("spatial_merge_size", 2)
    rows = sizes.get("image_size", 1540) // (sizes.get("patch_size", 14) * merged)
    return Image(rows * (rows + 1), (rows * merged) ** 2)


def _llava(sizes: Mapping[str, int]) -> Image:
    patches = (sizes.get("image_size", 336) // sizes.get("patch_size", 14)) ** 2
    return Image(patches, patches)


def _llava_next(sizes: Mapping[str, int]) -> Image:
    """Four crops with an end for each row of tokens, and the whole image (`llava_next.py`)."""
    rows = sizes.get("image_size", 336) // sizes.get("patch_size", 14)
    return Image(5 * rows**2 + 2 * rows, 5 * rows**2)


_QWEN = (
    "qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_vl_moe", "qwen3_5", "qwen3_5_moe",
)  # fmt: skip
_RULES: dict[str, Callable[[Mapping[str, int]], Image]] = {
    **dict.fromkeys(_QWEN, _qwen),
    "gemma3": _gemma3,
    "mistral3": _mistral3,
    "llava": _llava,
    "llava_next": _llava_next,
}
RULED = tuple(_RULES)  # types whose images are known
