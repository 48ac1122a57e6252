"""How well a decoder predicts a text: loss, perplexity, bits per byte, each token scored once."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from tallystick.errors import BadInput
from tallystick.models.decoder import Decoder
from tallystick.models.tokens import Tokenizer

ROWS = 256  # tokens whose logits are there at once


@dataclass(frozen=True)
class Score:
    """Of a text."""

    loss: float  # nats per token, over all but the first
    tokens: int  # of the text
    bytes: int  # of the text in UTF-8
    context: int  # tokens of a window
    stride: int  # from one window to the next

    @property
    def perplexity(self) -> float:
        """E to the loss; infinite where that is too large a number."""
        return math.exp(self.loss) if self.loss < 700 else math.inf

    @property
    def bits_per_byte(self) -> float:
        """The loss per token times the tokens per byte: comparable between tokenizers, as the loss is not."""
        return self.loss * self.tokens / (self.bytes * math.log(2))

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        own = asdict(self)
        return {"loss": own.pop("loss"), "perplexity": self.perplexity, "bits_per_byte": self.bits_per_byte, **own}


def evaluate(
    decoder: Decoder,
    tokenizer: Tokenizer,
    text: str,
    *,
    context: int | None = None,
    stride: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Score:
    """How well a decoder predicts a text, every token but the first scored once.

    Args:
        decoder: in the dtype and on the device where it computes.
        tokenizer: of the decoder.
        text: to be predicted.
        context: tokens that a window reads; as many as the decoder has positions by default.
        stride: tokens from one window to the next; half of the context by default. Each window scores the tokens that none
            scored before it, so that all but those of the first have at least ``context - stride`` tokens before them.
        progress: called after each window with the tokens scored so far, and with all there are.

    Raises:
        BadInput: for a text of fewer than two tokens, ids without a row, and windows that the decoder cannot read.
    """
    most = decoder.config.context
    context = most if context is None else context
    stride = max(1, context // 2) if stride is None else stride
    if not 1 <= context <= most:
        raise BadInput(f"context is {context:,}, expected 1 to {most:,}: the model has so many positions")
    if not 1 <= stride <= context:
        raise BadInput(f"stride is {stride:,}, expected 1 to {context:,}: tokens between windows would not be scored")
    (ids,) = tokenizer.encode_all([text])
    if len(ids) < 2:
        raise BadInput(f"the text has {len(ids)} tokens: at least two are needed, one to predict the other from")
    if max(ids) >= decoder.config.vocab_size:
        raise BadInput(f"the text has the id {max(ids):,}, and the embedding has {decoder.config.vocab_size:,} rows")
    tokens = torch.tensor(ids, device=decoder.embedding.weight.device)
    training = decoder.training
    decoder.eval()
    nats, start, scored = 0.0, 0, 1  # the first token is not predicted
    try:
        while scored < len(ids):
            end = min(start + context, len(ids) - 1)  # of what the window reads
            nats += _nats(decoder, tokens[start:end], tokens[scored : end + 1])
            start, scored = start + stride, end + 1
            if progress is not None:
                progress(scored - 1, len(ids) - 1)
    finally:
        decoder.train(training)
    return Score(nats / (len(ids) - 1), len(ids), len(text.encode()), context, stride)


def _nats(decoder: Decoder, window: Tensor, targets: Tensor) -> float:
    """Lost on the last tokens of a window and the one after it."""
    total = 0.0
    with torch.inference_mode():
        x = decoder.hidden(window[None])[0, -len(targets) :]
        for part, wanted in zip(x.split(ROWS), targets.split(ROWS), strict=True):
            total += F.cross_entropy(decoder.logits(part).double(), wanted, reduction="sum").item()
    return total
