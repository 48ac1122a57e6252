"""Change a decoder in place: dropout, fewer positions, a larger vocabulary.

Ties are kept, and the saved config matches. Parameters of another shape are new objects: build
the optimizer afterwards.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tallystick.arguments import named
from tallystick.errors import BadInput, shown
from tallystick.models.decoder import Decoder
from tallystick.models.families import DROPOUTS, changed
from tallystick.models.layers.attention import Attention

_STRETCHED = ("dynamic", "yarn", "longrope")  # RoPE scalings that depend on the number of positions


@named
def set_dropout(decoder: Decoder, rate: float) -> None:
    """Set the rate of every dropout in a decoder, including attention's.

    Args:
        decoder: changed in place.
        rate: 0 to 1.

    Raises:
        BadInput: if the rate is out of range.

    >>> decoder = Decoder.of("gpt2", vocab_size=50, n_embd=8, n_layer=1, n_head=2, n_positions=6)
    >>> set_dropout(decoder, 0.1)
    >>> decoder.dropout.p, decoder.config.attention_dropout
    (0.1, 0.1)
    """
    if not 0 <= rate <= 1:
        raise BadInput(f"dropout is {shown(rate)}, expected a rate from 0 to 1", code="bad-value")
    decoder.config = changed(decoder.config, **dict.fromkeys(DROPOUTS, rate))
    for module in decoder.modules():
        if isinstance(module, nn.Dropout):
            module.p = rate
        elif isinstance(module, Attention):
            module.dropout = rate


@named
def crop_positions(decoder: Decoder, context: int) -> None:
    """Keep only the first positions of a decoder: nanoGPT's ``crop_block_size``.

    Args:
        decoder: with learned positions, whose table is cut, or with RoPE, which has no table.
        context: number of positions to keep, from 1 to the current number.

    Raises:
        BadInput: if `context` is out of range, or RoPE's scaling depends on the context.

    >>> decoder = Decoder.of("gpt2", vocab_size=50, n_embd=8, n_layer=1, n_head=2, n_positions=6)
    >>> crop_positions(decoder, 4)
    >>> decoder.positions.weight.shape
    torch.Size([4, 8])
    """
    config = decoder.config
    if not 1 <= context <= config.context:
        raise BadInput(
            f"cannot keep {shown(context)} of {config.context} positions: expected 1 to {config.context}",
            code="bad-value",
        )
    if config.rope is not None and config.rope.scaling.get("rope_type") in _STRETCHED:
        kind = config.rope.scaling["rope_type"]
        raise BadInput(
            f"{kind} rotary angles depend on the number of positions, so they cannot be cropped", code="unsupported"
        )
    decoder.config = changed(config, context=context)
    if decoder.positions is not None:
        decoder.positions.weight = _rows(decoder.positions.weight, context)
        decoder.positions.num_embeddings = context


@named
def grow_vocabulary(decoder: Decoder, rows: int | None = None, *, multiple_of: int = 1) -> None:
    """Add rows to the embedding and the LM head; new rows get their initial distribution.

    Args:
        decoder: tied or untied.
        rows: least number of rows; None is the current number.
        multiple_of: pads the number of rows to a multiple, such as 64.

    Raises:
        BadInput: if `rows` is below the current number, or `multiple_of` below 1.

    >>> decoder = Decoder.of("gpt2", vocab_size=50, n_embd=8, n_layer=1, n_head=2, n_positions=6)
    >>> grow_vocabulary(decoder, multiple_of=64)
    >>> decoder.embedding.weight.shape, decoder.head.weight is decoder.embedding.weight
    (torch.Size([64, 8]), True)
    """
    config = decoder.config
    rows = config.vocab_size if rows is None else rows
    if rows < config.vocab_size or multiple_of < 1:
        raise BadInput(
            f"the vocabulary has {config.vocab_size} rows, and cannot grow to {shown(rows)} in multiples of {shown(multiple_of)}",
            code="bad-value",
        )
    rows = -(-rows // multiple_of) * multiple_of
    decoder.config = changed(config, vocab_size=rows)
    std = config.init_std
    decoder.embedding.weight = _rows(decoder.embedding.weight, rows, 1.0 if std is None else std)
    decoder.embedding.num_embeddings = decoder.head.out_features = rows
    if not config.tied:
        decoder.head.weight = _rows(decoder.head.weight, rows, config.width**-0.5 if std is None else std)
    decoder.tie()


def _rows(weight: Tensor, rows: int, std: float = 0.0) -> nn.Parameter:
    """Return a Parameter with the first rows of another, and normal new rows after its last."""
    new = weight.new_empty((rows, weight.shape[1]))
    kept = min(rows, len(weight))
    with torch.no_grad():
        new[:kept] = weight[:kept]
        nn.init.normal_(new[kept:], std=std) if rows > kept else None
    return nn.Parameter(new, requires_grad=weight.requires_grad)
