"""Guess a tensor's role from its name alone.

The names are those of published checkpoints: Hugging Face's, nanoGPT's, Meta's, the book's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from tallystick.core.tensor_names import LONGEST_NAME

# The first rule whose pattern is found in the dotted name decides. A norm inside an attention is a
# norm. A shared expert is used by every token, so it is an MLP. A head may hold numbered parts.
_RULES = tuple(
    (role, re.compile(pattern, re.IGNORECASE))
    for role, pattern in (
        ("norm", r"norm[^.]*(\.[^.]+)?$|(^|[._])ln(_[^.]*|\d*)\.[^.]+$"),
        ("attention", r"(^|\.)rel(ative)?_(pos|attention)\w*(\.|$)|(^|\.)value_embed\w*(\.|$)|(^|[._])(qkvo?|qk|vo|kv|[qkvo])_bank$"),
        ("mlp", r"(^|\.)shared_experts?(\.|$)"),
        ("experts", r"(^|\.)experts?(\.|$)"),
        ("router", r"(^|\.)router(\.|$)|(^|\.)(gate|wg)\.(weight|bias|linear|classifier|wg)|(^|\.)shared_expert_gate\.|(^|[._])(score_correction|expert|router)_bias$"),
        ("head", r"(^|\.)(lm_head|embed_out|out_head|unembed(ding)?|output_layer|to_logits|final_proj)(\.|$)|^(model\.)?(head|output)\."),
        ("position_embedding", r"(^|[._])(wpe|pe|pos|pos_emb\w*|position\w*|embed_positions?)(\.|$)"),
        ("token_embedding", r"(^|\.)(wte|tok(en)?_?emb\w*|embed_(tokens?(_per_layer)?|in)|word_embeddings?|embeddings?|embed|shared)\."),
        ("conv", r"(^|\.)conv\w*\."),
        ("ssm", r"(^|\.)(mamba|ssm|linear_attn|A_log|dt_bias|dt_proj)(\.|$)|(^|\.)(weight|bias)_([ih]h|hr)_l\d+(_reverse)?$"),
        ("attention", r"(^|\.)(W?qkv(_proj)?|to_([qkv]|qkv|kv|qk|out)(_\w+)?|att(n|ention)?_(proj|out|qkv|in)\w*|(mem|null|memory)_(k|v|kv)s?|\w*talking_heads\w*)(\.|$)"),
        ("attention", r"(^|[._])\w*(attn|attention|att|mha)(\.\w*in_proj)?(\.|$)"),
        ("ssm", r"(^|\.)(mixer|D|x_proj|in_proj)(\.|$)"),
        ("attention", r"(^|\.)[qkv]_proj\.|(^|\.)attention\w*\."),
        ("mlp", r"(^|[._])(mlp\w*|ffn?|feed_?forward\w*|fc\w*|c_fc|dense(_\w+|\w+dense)|w[123]|gate_up_proj|(gate|up|down)_proj)\.|(^|[._])(mlp|ffn?)_bank$|(^|[._])(ffn?|mlp)_(?!hc)\w+\."),
        ("attention", r"(^|\.)W_?[qkvo](\.|$)"),
    )
)  # fmt: skip

# Untrained tensors of a state dict: causal masks, rotary tables, BART's bias of zeros.
_BUFFER = re.compile(
    r"(^|\.)(attn|attention|self_attn|att)\.(masked_bias|mask)$|rotary_\w+\.\w*inv_freq$|(^|\.)inv_freq$"
    r"|(^|\.)(embed_positions|final_logits_bias|position_ids|e_score_correction_bias|num_batches_tracked|running_(mean|var))$"
    r"|(^|\.)vera_[AB]$"
)
# Scales, zero points and tables of packed weights.
_QUANTISATION = re.compile(
    r"\.(absmax|quant_map|nested_absmax|nested_quant_map|SCB|weight_format|g_idx|qzeros|scales|biases"
    r"|weight_scale(_inv|_2)?|weight_(shape|zero_point|g_idx)|(weight|input)_global_scale|(input|[kqv])_scale|\w*activation_scale)$|\.quant_state\."
)
_CAUSAL_MASK = re.compile(r"(^|\.)(attn|attention|self_attn)\.bias$")


_NUMBER = re.compile(r"\d+")
_DIGITS = re.compile(r"(\d+)")


def role_of(name: str) -> str:
    """Return the role that a tensor's name implies, or ``"other"``.

    >>> role_of("h.0.ln_1.weight"), role_of("lm_head.0.weight")
    ('norm', 'head')
    >>> role_of("model.layers.3.mlp.gate.weight")
    'router'

    Parts may be joined by slashes, as in JAX checkpoints.
    """
    return _role(_NUMBER.sub("0", name).replace("/", ".")) if len(name) <= LONGEST_NAME else "other"


def is_buffer(name: str, shape: Sequence[int]) -> bool:
    """Return whether a stored tensor is a well-known buffer.

    GPT-2's causal mask is called `attn.bias`, like a real bias; its four dimensions identify it.

    Args:
        name: the tensor's name.
        shape: its shape.
    """
    return len(name) <= LONGEST_NAME and _buffer(_NUMBER.sub("0", name), len(shape) == 4)


def is_quantisation(name: str) -> bool:
    """Return whether a well-known name marks a buffer of packed weights, such as a scale."""
    return len(name) <= LONGEST_NAME and bool(_QUANTISATION.search(name))


# A checkpoint of 90,000 tensors has a few dozen names, ignoring their indices.
@lru_cache(maxsize=4096)
def _role(name: str) -> str:
    return next((role for role, pattern in _RULES if pattern.search(name)), "other")


@lru_cache(maxsize=4096)
def _buffer(name: str, four_dimensional: bool) -> bool:
    return bool(_BUFFER.search(name) or _QUANTISATION.search(name)) or (
        four_dimensional and bool(_CAUSAL_MASK.search(name))
    )


def by_number(name: str) -> list[str]:
    """Return a sorting key that puts layer 2 before layer 10."""
    return [part.rjust(12, "0") if part.isdecimal() else part for part in _DIGITS.split(name)]
