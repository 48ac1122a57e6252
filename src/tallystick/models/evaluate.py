"""How well a decoder predicts a text: loss, perplexity, bits per byte, each token scored once.

A window reads `context` tokens, and its last `stride` are scored; so all but those of the first window have at least
context - stride + 1 tokens before them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
import torch.nn.functional as F

from tallystick.errors import BadInput, shown
from tallystick.models.decoder import Decoder
from tallystick.models.generation import NOT_A_NUMBER
from tallystick.models.tokens import Tokenizer

CONTEXT = 2048  # where nobody says another
AT_ONCE = 2048  # tokens that are read at once, or one window
LOGITS_AT_ONCE = 2**24  # numbers


@dataclass(frozen=True)
class Score:
    """Of a text."""

    loss: float  # nats per token
    tokens: int  # that are scored: all, but the first where the tokenizer sets none before a text
    bytes: int  # of UTF-8 that they stand for
    context: int  # tokens of a window
    stride: int  # those of it that are scored

    @property
    def perplexity(self) -> float:
        """E to the loss; infinite where that is too large a number."""
        return math.exp(self.loss) if self.loss < 700 else math.inf

    @property
    def bits_per_byte(self) -> float:
        """The loss per token times the tokens per byte: comparable between tokenizers, as the loss is not."""
        return self.loss * self.tokens / (self.bytes * math.log(2))

    def to_dict(self) -> dict[str, Any]:
        """Plain values; an infinite perplexity, which JSON has no word for, is null."""
        own = asdict(self)
        perplexity = self.perplexity if math.isfinite(self.perplexity) else None
        return {"loss": own.pop("loss"), "perplexity": perplexity, "bits_per_byte": self.bits_per_byte, **own}


def evaluate(
    decoder: Decoder,
    tokenizer: Tokenizer,
    text: str | bytes,
    *,
    context: int | None = None,
    stride: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Score:
    """How well a decoder predicts a text, every token scored once.

    Args:
        decoder: in the dtype and on the device where it computes; dropout is off meanwhile.
        tokenizer: of the decoder. What it sets before a text is read, and not scored.
        text: to be predicted; bytes of UTF-8, or of anything where the tokenizer's ids are bytes.
        context: tokens that a window reads; as many as the decoder has positions by default, up to `CONTEXT`.
        stride: tokens of a window that are scored; half of the context by default. Fewer are slower, and give each token
            more to be predicted from.
        progress: called with the tokens scored so far, and with all there are.

    Raises:
        BadInput: for a text of fewer than two tokens, ids without a row, and windows that the decoder cannot read.
    """
    context = min(CONTEXT, decoder.config.context) if context is None else context
    stride = max(1, context // 2) if stride is None else stride
    ids, first = _read(tokenizer, text)
    size = len(text.encode() if isinstance(text, str) else text)
    begin = tokenizer.begin[-1:]
    if len(begin) + len(ids) < 2:
        raise BadInput(
            f"the text has {len(ids)} tokens: at least two are needed, one to predict the other from", code="bad-value"
        )
    if not begin:
        size -= first
    ids = [*begin, *ids]
    nats, scored = 0.0, 0
    for losses in token_losses(decoder, ids, context=context, stride=stride):
        nats += losses.double().sum().item()
        scored += len(losses)
        if progress is not None:
            progress(scored, len(ids) - 1)
    if math.isnan(nats):
        raise BadInput(NOT_A_NUMBER, code="malformed")
    return Score(nats / scored, scored, size, context, stride)


def token_losses(decoder: Decoder, ids: Sequence[int], *, context: int, stride: int) -> Iterator[torch.Tensor]:
    """The loss of each token but the first, in nats and in order, some at a time.

    Args:
        decoder: dropout is off meanwhile.
        ids: of a text, two or more.
        context: how many tokens are read at once.
        stride: how many of them are scored.

    Raises:
        BadInput: for ids without a row, and a context or stride out of range.
    """
    most, rows = decoder.config.context, decoder.config.vocab_size
    if not 1 <= context <= most:
        raise BadInput(
            f"context is {shown(context)}, expected 1 to {most:,}: the model has so many positions", code="bad-value"
        )
    if not 1 <= stride <= context:
        raise BadInput(
            f"stride is {shown(stride)}, expected 1 to {context:,}: tokens between windows would not be scored",
            code="bad-value",
        )
    device = decoder.embedding.weight.device
    whole = torch.tensor(ids)
    if whole.min() < 0 or whole.max() >= rows:
        odd = next(token for token in ids if not 0 <= token < rows)
        raise BadInput(f"the text has the id {odd}, and the embedding has rows for 0 to {rows - 1:,}", code="mismatch")
    targets = len(ids) - 1
    # Each window ends before its last target. The first scores all that it can, the others what is new to them.
    length = min(context, targets)
    ends = [length, *range(length + stride, targets, stride), targets][: 1 if length == targets else None]
    at_once = max(1, AT_ONCE // length)
    training = decoder.training
    decoder.eval()
    try:
        for start in range(0, len(ends), at_once):
            group = ends[start : start + at_once]
            new = [end - before for before, end in zip([0, *ends][start:], group, strict=False)]
            read = torch.stack([whole[end - length : end] for end in group]).to(device)
            wanted = torch.cat([whole[end + 1 - count : end + 1] for end, count in zip(group, new, strict=True)])
            with torch.inference_mode():
                hidden = decoder.hidden(read)  # (B, T, d)
                scored = torch.cat([row[length - count :] for row, count in zip(hidden, new, strict=True)])  # (N, d)
                losses = _losses(decoder, scored, wanted.to(device)).cpu()
            yield losses
    finally:
        decoder.train(training)


def _losses(decoder: Decoder, hidden: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    """(N, d) and (N,) -> (N,): the logits of only some at a time are there at once."""
    block = max(1, LOGITS_AT_ONCE // decoder.config.vocab_size)
    pairs = zip(hidden.split(block), wanted.split(block), strict=True)
    return torch.cat([F.cross_entropy(decoder.logits(some).float(), those, reduction="none") for some, those in pairs])


def _read(tokenizer: Tokenizer, text: str | bytes) -> tuple[list[int], int]:
    """The ids of a text, and how many bytes the first one stands for."""
    if isinstance(text, bytes):
        if tokenizer.reads_bytes:
            return list(text), 1
        try:
            text = text.decode()
        except UnicodeDecodeError as error:
            raise BadInput(
                f"the text is not UTF-8 at byte {error.start}: a tokenizer of bytes could read it", code="malformed"
            ) from None
    return tokenizer.encode_counting(text)
