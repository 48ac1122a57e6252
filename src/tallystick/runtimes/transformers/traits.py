"""Differences in how transformers' eager code runs attention, by model type.

Measured on transformers 5.23 with torch's saved-tensor hooks and allocator; the tests repeat the
measurement. A type without an entry runs as Llama does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple


class AttentionTraits(NamedTuple):
    """Attention behaviour of one type's code that affects memory."""

    # Kernel used when a fused one is requested. "fused": torch's scaled_dot_product_attention,
    # which saves no scores. "eager": the type writes attention out in PyTorch. "float32": torch's
    # math fallback, all in float32.
    kernel: str = "fused"
    # Dtype of the softmax. "float32": of an upcast copy of the scores. "own": the model's dtype.
    # "products": queries and keys are upcast, and their product is in float32 already.
    softmax: str = "float32"
    # The fused kernel gets a mask even if a causal flag would do, so keys and values are repeated.
    always_masked: bool = False
    # Positions of a causal mask that each layer registers as a buffer and converts to bool again.
    # The bool masks are saved.
    mask_buffer: int = 0
    # Queries and keys are concatenated from a rotated and an unrotated part. So the result has
    # another memory order, and the output projection saves a copy of it.
    rotary_concatenated: bool = False
    # Both parts of queries and keys stay in local variables while attention runs.
    rotary_parts_alive: bool = False
    # Cosines and sines are float32, whatever the model's dtype.
    rotary_float32: bool = False
    # Queries and keys are upcast to float32 while they are rotated.
    rotary_upcast: bool = False
    # Layers with a sliding window have their own cosines and sines, with another base.
    rotary_per_window: bool = False
    # Each layer interleaves (repeats) cosines and sines again, so each layer saves its own.
    rotary_per_layer: bool = False
    # A local variable holds the attention output after it is added to the residual; the position
    # vectors too.
    output_alive: bool = False
    # Tensors of the residual's width that stay in local variables while the MLP runs.
    residuals_alive: int = 0
    # Eager attention: a loop variable holds the probabilities until the next layer has run.
    probabilities_alive: bool = False
    # Eager attention: the scores before masking live on next to the masked scores.
    unmasked_scores_alive: bool = False
    # The cache keeps positions that a sliding window no longer covers.
    keeps_full_cache: bool = False


USUAL = AttentionTraits()
CONCATENATED = AttentionTraits(rotary_concatenated=True)
PER_WINDOW = AttentionTraits(rotary_per_window=True)
FLOAT32_ROTARY = AttentionTraits(rotary_float32=True)
UPCAST = AttentionTraits(rotary_upcast=True)
INTERLEAVED = AttentionTraits(rotary_per_layer=True)
GPT2 = AttentionTraits(softmax="own", output_alive=True)
GPTJ = AttentionTraits(softmax="products", probabilities_alive=True)
ALIBI = AttentionTraits(kernel="eager", probabilities_alive=True, unmasked_scores_alive=True)
LLAMA4 = AttentionTraits(softmax="own", rotary_float32=True)


def _falcon(values: Mapping[str, Any]) -> AttentionTraits:
    """Handle Falcon: with one key for all queries, torch's fused kernels are not reached.

    They do not broadcast keys.
    """
    multi_query = values["multi_query"] and not values["new_decoder_architecture"]
    return AttentionTraits(
        kernel="float32" if multi_query else "fused",
        softmax="own",
        always_masked=True,
        probabilities_alive=True,
        unmasked_scores_alive=True,
    )


def _stablelm(values: Mapping[str, Any]) -> AttentionTraits:
    """Handle StableLM: without a parallel residual, two tensors stay alive during the MLP.

    They are the result of the first norm and the output of attention.
    """
    alive = 0 if values["use_parallel_residual"] else 2
    return AttentionTraits(rotary_concatenated=True, rotary_parts_alive=True, residuals_alive=alive)


def _book_gpt(values: Mapping[str, Any]) -> AttentionTraits:
    """Handle the book's own code, which masks with a buffer of all positions."""
    return AttentionTraits(kernel="eager", softmax="own", mask_buffer=int(values["context_length"]))


TRAITS: dict[str, AttentionTraits | Callable[[Mapping[str, Any]], AttentionTraits]] = {
    "axk1": CONCATENATED,
    "axk2": CONCATENATED,
    "bailing_hybrid": CONCATENATED,
    "bamba": AttentionTraits(probabilities_alive=True),
    "bloom": ALIBI,
    "book_gpt": _book_gpt,
    "book_llama": AttentionTraits(kernel="eager", softmax="own"),
    "codegen": GPTJ,
    "cohere": UPCAST,
    "cohere2": UPCAST,
    "deepseek_v2": CONCATENATED,
    "deepseek_v3": CONCATENATED,
    "deepseek_v32": CONCATENATED,
    "dots3_note": CONCATENATED,
    "dots3_note_text": CONCATENATED,
    "ernie4_5": AttentionTraits(rotary_float32=True, rotary_per_layer=True),
    "falcon": _falcon,
    "flex_olmo": FLOAT32_ROTARY,
    "gemma3": PER_WINDOW,
    "gemma3_text": PER_WINDOW,
    "gemma3n_text": PER_WINDOW,
    "gemma4": PER_WINDOW,
    "gemma4_text": PER_WINDOW,
    "gemma4_unified": PER_WINDOW,
    "gemma4_unified_text": PER_WINDOW,
    "glm": AttentionTraits(rotary_concatenated=True, rotary_per_layer=True),
    "glm4": AttentionTraits(rotary_concatenated=True, rotary_per_layer=True),
    "glm4_moe": CONCATENATED,
    "glm4_moe_lite": CONCATENATED,
    "glm_moe_dsa": CONCATENATED,
    "gpt-sw3": GPT2,
    "gpt2": GPT2,
    "gpt_bigcode": AttentionTraits(output_alive=True),
    "gpt_neo": AttentionTraits(softmax="products", output_alive=True, probabilities_alive=True),
    "gpt_neox": CONCATENATED,
    "gpt_oss": AttentionTraits(softmax="own"),
    "gptj": GPTJ,
    "helium": INTERLEAVED,
    "hy_v4": CONCATENATED,
    "kimi_linear": CONCATENATED,
    "llama4": LLAMA4,
    "llama4_text": LLAMA4,
    "longcat_flash": CONCATENATED,
    "minicpm3": CONCATENATED,
    "minimax": AttentionTraits(keeps_full_cache=True),
    "mpt": ALIBI,
    "nanogpt": AttentionTraits(softmax="own"),
    "nemotron": CONCATENATED,
    "olmo": FLOAT32_ROTARY,
    "olmo2": FLOAT32_ROTARY,
    "olmo3": AttentionTraits(rotary_float32=True, rotary_per_window=True),
    "phi": AttentionTraits(rotary_concatenated=True, rotary_parts_alive=True),
    "phi3": CONCATENATED,
    "phi4_multimodal": CONCATENATED,
    "stablelm": _stablelm,
    "youtu": CONCATENATED,
}


def traits_of(model_type: str, values: Mapping[str, Any]) -> AttentionTraits:
    """Return how the attention of a model runs.

    Args:
        model_type: the config's.
        values: the config keys that change a tensor, with their current values.
    """
    found = TRAITS.get(model_type, USUAL)
    return found if isinstance(found, AttentionTraits) else found(values)
