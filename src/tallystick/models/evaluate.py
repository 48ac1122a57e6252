"""Evaluate a decoder on a text: loss, perplexity and bits per byte, each token scored once.

A window has `context` tokens, and its last `stride` tokens are scored. So every token after the
first window has at least context - stride + 1 tokens before it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
import torch.nn.functional as F

from tallystick.arguments import named
from tallystick.errors import BadInput, shown
from tallystick.models.decoder import Decoder
from tallystick.models.generation import NOT_A_NUMBER
from tallystick.models.tokens import Tokenizer

CONTEXT = 2048  # tokens, by default
AT_ONCE = 2048  # tokens per forward pass, or one window
LOGITS_AT_ONCE = 2**24  # elements


@dataclass(frozen=True)
class Score:
    """The result of `evaluate`."""

    loss: float  # nats per token
    tokens: int  # scored; the first token is not, unless the tokenizer sets one before it
    bytes: int  # of UTF-8, in the scored tokens
    context: int  # tokens per window
    stride: int  # scored tokens per window

    @property
    def perplexity(self) -> float:
        """Exponential of the loss; infinite if it overflows."""
        return math.exp(self.loss) if self.loss < 700 else math.inf

    @property
    def bits_per_byte(self) -> float:
        """Loss per token times tokens per byte: comparable between tokenizers, unlike the loss."""
        return self.loss * self.tokens / (self.bytes * math.log(2))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values; an infinite perplexity becomes null, as JSON has no infinity."""
        own = asdict(self)
        perplexity = self.perplexity if math.isfinite(self.perplexity) else None
        return {"loss": own.pop("loss"), "perplexity": perplexity, "bits_per_byte": self.bits_per_byte, **own}


@named
def evaluate(
    decoder: Decoder,
    tokenizer: Tokenizer,
    text: str | bytes,
    *,
    context: int | None = None,
    stride: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Score:
    """Score every token of a text once.

    Args:
        decoder: used in its own dtype and on its own device; dropout is off meanwhile.
        tokenizer: the decoder's tokenizer. Tokens that it sets before a text are not scored.
        text: text to predict. Bytes are UTF-8, or anything if the tokenizer's ids are bytes.
        context: tokens per window; by default the decoder's positions, at most `CONTEXT`.
        stride: scored tokens per window; half of the context by default. A smaller stride is
            slower and gives each token more context.
        progress: called with the number of tokens scored so far and the total.

    Returns:
        The loss in nats per token, with the tokens and bytes that were scored.

    Raises:
        BadInput: if the text has fewer than two tokens or ids outside the embedding, or if
            context or stride are out of range.

    >>> decoder = Decoder.of("gpt2", vocab_size=257, n_embd=8, n_layer=1, n_head=2, n_positions=32)
    >>> decoder.embedding.weight.data.zero_().shape  # equal logits for each of 257 ids
    torch.Size([257, 8])
    >>> score = evaluate(decoder, Tokenizer.bytes(), "Hello")
    >>> score.tokens, round(score.perplexity)
    (4, 257)
    """
    context = min(CONTEXT, decoder.config.context) if context is None else context
    stride = max(1, context // 2) if stride is None else stride
    ids, first = _read(tokenizer, text)
    size = len(text.encode() if isinstance(text, str) else text)
    begin = tokenizer.begin[-1:]
    if len(begin) + len(ids) < 2:
        raise BadInput(f"the text has {len(ids)} tokens: at least two are needed", code="bad-value")
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
    """Yield the loss of each token but the first, in nats and in order, in batches.

    Args:
        decoder: dropout is off meanwhile.
        ids: token ids of a text, two or more.
        context: tokens per window.
        stride: scored tokens per window.

    Raises:
        BadInput: if ids are outside the embedding, or context or stride are out of range.
    """
    most, rows = decoder.config.context, decoder.config.vocab_size
    if not 1 <= context <= most:
        raise BadInput(
            f"context is {shown(context)}, expected 1 to {most:,}, the model's number of positions", code="bad-value"
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
        raise BadInput(f"the text has the id {odd}, but the embedding has rows for 0 to {rows - 1:,}", code="mismatch")
    targets = len(ids) - 1
    # The first window scores all its targets, each later one only its new targets.
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
    """Return the losses of hidden states (N, d) and targets (N,) -> (N,), logits in blocks."""
    block = max(1, LOGITS_AT_ONCE // decoder.config.vocab_size)
    pairs = zip(hidden.split(block), wanted.split(block), strict=True)
    return torch.cat([F.cross_entropy(decoder.logits(some).float(), those, reduction="none") for some, those in pairs])


def _read(tokenizer: Tokenizer, text: str | bytes) -> tuple[list[int], int]:
    """Return the ids of a text, and the number of bytes in its first token."""
    if isinstance(text, bytes):
        if tokenizer.reads_bytes:
            return list(text), 1
        try:
            text = text.decode()
        except UnicodeDecodeError as error:
            raise BadInput(
                f"the text is not UTF-8 at byte {error.start}: use a byte tokenizer", code="malformed"
            ) from None
    return tokenizer.encode_counting(text)
