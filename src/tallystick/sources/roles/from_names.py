"""What a tensor is for, told from its name alone, where no config says it.

The names are those that published checkpoints use: Hugging Face's, nanoGPT's, Meta's, the book's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from tallystick.core.tensor_names import LONGEST_TOLD

# The first rule whose pattern is found in the dotted name decides. A norm inside an attention is a
# norm, a shared expert is used by every token and so an ordinary MLP, a head may hold numbered parts.
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
        ("mlp", r"(^|[._])(mlp\w*|ffn?|feed_?forward\w*|fc\w*|c_fc|dense_\w+|w[123]|gate_up_proj|(gate|up|down)_proj)\.|(^|[._])(mlp|ffn?)_bank$|(^|[._])(ffn?|mlp)_(?!hc)\w+\."),
        ("attention", r"(^|\.)W_?[qkvo](\.|$)"),
    )
)  # fmt: skip

# Tensors of a state dict that nobody trains: causal masks, rotary tables, BART's bias of zeros.
_BUFFER = re.compile(
    r"(^|\.)(attn|attention|self_attn|att)\.(masked_bias|mask)$|rotary_\w+\.\w*inv_freq$|(^|\.)inv_freq$"
    r"|(^|\.)(embed_positions|final_logits_bias|position_ids|e_score_correction_bias|num_batches_tracked|running_(mean|var))$"
    r"|(^|\.)vera_[AB]$"
)
# What packed weights need to be numbers.
_QUANTISATION = re.compile(
    r"\.(absmax|quant_map|nested_absmax|nested_quant_map|SCB|weight_format|g_idx|qzeros|scales|biases"
    r"|weight_scale(_inv|_2)?|weight_(shape|zero_point|g_idx)|(weight|input)_global_scale|(input|[kqv])_scale|\w*activation_scale)$|\.quant_state\."
)
_CAUSAL_MASK = re.compile(r"(^|\.)(attn|attention|self_attn)\.bias$")


_NUMBER = re.compile(r"\d+")
_DIGITS = re.compile(r"(\d+)")


def role_of(name: str) -> str:
    """The role that a tensor's name gives away, ``"other"`` where it gives none.

    >>> role_of("h.0.ln_1.weight"), role_of("lm_head.0.weight"), role_of("model.layers.3.mlp.gate.weight")
    ('norm', 'head', 'router')

    Parts may be joined by slashes, as in what JAX saves.
    """
    return _role(_NUMBER.sub("0", name).replace("/", ".")) if len(name) <= LONGEST_TOLD else "other"


def is_buffer(name: str, shape: Sequence[int]) -> bool:
    """Whether a stored tensor is a well-known buffer.

    GPT-2's causal mask is called `attn.bias`, as a real bias would be; its four dimensions tell it.
    """
    return len(name) <= LONGEST_TOLD and _buffer(_NUMBER.sub("0", name), len(shape) == 4)


def is_quantisation(name: str) -> bool:
    """Whether a buffer is one that packed weights need, by well-known names."""
    return len(name) <= LONGEST_TOLD and bool(_QUANTISATION.search(name))


# A checkpoint of 90,000 tensors has a few dozen names, apart from the numbers in them.
@lru_cache(maxsize=4096)
def _role(name: str) -> str:
    return next((role for role, pattern in _RULES if pattern.search(name)), "other")


@lru_cache(maxsize=4096)
def _buffer(name: str, four_dimensional: bool) -> bool:
    return bool(_BUFFER.search(name) or _QUANTISATION.search(name)) or (
        four_dimensional and bool(_CAUSAL_MASK.search(name))
    )


def by_number(name: str) -> list[str]:
    """A sorting key under which layer 2 comes before layer 10."""
    return [part.rjust(12, "0") if part.isdecimal() else part for part in _DIGITS.split(name)]
