"""Map the stored name of a packed weight to the model's name of that weight."""

from __future__ import annotations

import re

# Name endings that only packed weights have.
_ALWAYS = (
    (re.compile(r"\.(?:qweight|weight_packed|q_weight|weight\._data(?:\._data)?)$"), ".weight"),
    (re.compile(r"\._(\w+)_qdata$"), r".\1"),
    (re.compile(r"(?:\._packed_params){1,2}\.(?:0|_packed_weight)$"), ".weight"),  # of torch.ao.quantization
    (re.compile(r"(?:\._packed_params){2}\.1$"), ".bias"),
    (re.compile(r"_blocks$"), ""),
)
# Name endings that plain parameters may have too.
_WHERE_PACKED = re.compile(r"\.(?:W_q|codes|indices|trellis|dense_weights|embedding_quantized)$")


def model_name(stored: str, *, packed: bool = False) -> str:
    """Return the model's name of a packed weight; any other name unchanged.

    Args:
        stored: the name in the files.
        packed: whether the tensor is known to be a packed weight. Then endings that plain
            parameters may have too are mapped as well.

    >>> model_name("mlp.qweight"), model_name("experts.down_proj_blocks"), model_name("ln.weight")
    ('mlp.weight', 'experts.down_proj', 'ln.weight')
    >>> model_name("h.0.attn.W_q"), model_name("h.0.attn.k_proj.W_q", packed=True)
    ('h.0.attn.W_q', 'h.0.attn.k_proj.weight')
    """
    for pattern, name in _ALWAYS:
        if pattern.search(stored):
            return pattern.sub(name, stored)
    return _WHERE_PACKED.sub(".weight", stored) if packed else stored
