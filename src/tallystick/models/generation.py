"""Autoregressive generation with a KV cache: each token is read once.

for ids in stream(decoder, [prompt], tokens=50):      # one new token per sequence and step
    ...
generate(decoder, [prompt, other], tokens=50)         # all new tokens of each sequence
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from functools import lru_cache

import torch
from torch import Tensor

from tallystick.errors import BadInput, shown
from tallystick.models import compiling
from tallystick.models.cache import Cache, StillCache
from tallystick.models.decoder import Decoder
from tallystick.models.sampling import Sampling
from tallystick.models.tokens import Tokenizer

Step = Callable[[Decoder, Tensor, Cache, Tensor | None], Tensor]

NOT_A_NUMBER = (
    "the logits are NaN: the weights hold NaN (check with load_pretrained(check_finite=True)), or the"
    " dtype is too narrow"
)


def generate(
    decoder: Decoder,
    prompts: Sequence[Sequence[int]],
    *,
    tokens: int,
    sampling: Sampling | None = None,
    stop: Iterable[int] = (),
    vocabulary: int | None = None,
    seed: int | None = None,
    compiled: bool = False,
) -> list[list[int]]:
    """Return the tokens generated after each prompt, without stop tokens.

    Args:
        decoder: used in its own dtype and on its own device; dropout is off meanwhile.
        prompts: token ids; lengths may differ.
        tokens: most tokens to generate per prompt.
        sampling: how a token is chosen; greedy by default.
        stop: tokens that end a sequence.
        vocabulary: size of the tokenizer's vocabulary, see `stream`.
        seed: seed of the draws, 0 or more.
        compiled: whether to compile the one-token step, see `stream`.

    Raises:
        BadInput: as in `stream`.
    """
    written: list[list[int]] = [[] for _ in prompts]
    for step in stream(
        decoder,
        prompts,
        tokens=tokens,
        sampling=sampling,
        stop=stop,
        vocabulary=vocabulary,
        seed=seed,
        compiled=compiled,
    ):
        for row, token in zip(written, step, strict=True):
            if token is not None:
                row.append(token)
    return written


def stream(
    decoder: Decoder,
    prompts: Sequence[Sequence[int]],
    *,
    tokens: int,
    sampling: Sampling | None = None,
    stop: Iterable[int] = (),
    vocabulary: int | None = None,
    seed: int | None = None,
    compiled: bool = False,
) -> Generator[list[int | None], None, None]:
    """Yield the next token of every sequence, step by step; None once a sequence has ended.

    Args:
        decoder: used in its own dtype and on its own device; dropout is off meanwhile.
        prompts: token ids; lengths may differ.
        tokens: most tokens to generate per prompt.
        sampling: how a token is chosen; greedy by default.
        stop: tokens that end a sequence.
        vocabulary: size of the tokenizer's vocabulary; later rows of the embedding are
            padding and never chosen.
        seed: seed of the draws, 0 or more; results repeat on the same machine.
        compiled: whether to compile the one-token step at its first call, in up to a minute.
            It is meant for CUDA. On a CPU memory bandwidth is the limit and little is gained.

    Raises:
        BadInput: if a prompt is empty or has ids outside the embedding, if prompt and new
            tokens exceed the model's positions, or if compiling is not possible.
    """
    sampling = sampling or Sampling()
    if seed is not None and not 0 <= seed < 2**63:
        raise BadInput(f"seed is {shown(seed)}, expected 0 or more, below 2^63", code="bad-value")
    _check(decoder, prompts, tokens)
    return _stream(decoder, prompts, tokens, sampling, frozenset(stop), vocabulary, seed, compiled)


def _stream(
    decoder: Decoder,
    prompts: Sequence[Sequence[int]],
    tokens: int,
    sampling: Sampling,
    stop: frozenset[int],
    vocabulary: int | None,
    seed: int | None,
    compiled: bool,
) -> Generator[list[int | None], None, None]:
    device = decoder.embedding.weight.device
    longest = max(map(len, prompts))
    missing = torch.tensor([longest - len(prompt) for prompt in prompts], device=device)
    padding = missing if missing.any() else None
    read = torch.tensor([[0] * (longest - len(prompt)) + list(prompt) for prompt in prompts], device=device)  # (B, T)
    generator = None if seed is None else torch.Generator(device).manual_seed(seed)
    seen = torch.zeros(len(prompts), decoder.config.vocab_size, dtype=torch.bool, device=device)
    for row, prompt in zip(seen, prompts, strict=True):
        row[list(prompt)] = True
    ended = [False] * len(prompts)
    cache = decoder.cache(len(prompts), longest + tokens)
    step: Step = _step
    following = _compiled_step(device) if compiled else step
    training = decoder.training
    decoder.eval()
    try:
        for _ in range(tokens):
            with torch.inference_mode():
                logits = step(decoder, read, cache, padding)[:, :vocabulary]  # (B, V)
                if step is not following:  # the prompt was read: from here on the shapes are static
                    cache, step = StillCache(cache), following
                if logits.isnan().any():
                    raise BadInput(NOT_A_NUMBER, code="malformed")
                chosen = sampling.choose(logits, seen[:, : logits.shape[-1]], generator)
                seen.scatter_(1, chosen[:, None], True)
            ended = [over or token in stop for over, token in zip(ended, chosen.tolist(), strict=True)]
            yield [None if over else token for over, token in zip(ended, chosen.tolist(), strict=True)]
            if all(ended):
                return
            read = chosen[:, None]
    finally:
        decoder.train(training)


def _step(decoder: Decoder, read: Tensor, cache: Cache, padding: Tensor | None) -> Tensor:
    """Return the logits of the next token in each sequence, (B, V)."""
    return decoder(read, cache=cache, padding=padding, last=True)[:, -1]


@lru_cache
def _compiled_step(device: torch.device) -> Step:
    """Return the compiled step, shared by all decoders: torch.compile recompiles for each."""
    step: Step = compiling.compiled(_step, device, fullgraph=True, dynamic=False)
    return step


def _check(decoder: Decoder, prompts: Sequence[Sequence[int]], tokens: int) -> None:
    rows, context = decoder.config.vocab_size, decoder.config.context
    if not prompts:
        raise BadInput("there is no prompt", code="bad-value")
    if tokens < 1:
        raise BadInput(f"tokens is {tokens}, expected 1 or more", code="bad-value")
    for number, prompt in enumerate(prompts):
        which = f"prompt {number + 1}" if len(prompts) > 1 else "the prompt"
        if not prompt:
            raise BadInput(f"{which} is empty: nothing to continue", code="bad-value")
        odd = next((token for token in prompt if not 0 <= token < rows), None)
        if odd is not None:
            raise BadInput(
                f"{which} has the id {odd}, but the embedding has rows for 0 to {rows - 1:,}", code="mismatch"
            )
        if len(prompt) > context:
            raise BadInput(
                f"{which} has {len(prompt):,} tokens, more than the model's {context:,} positions", code="bad-value"
            )
        if len(prompt) + tokens - 1 > context:
            raise BadInput(
                f"{which} has {len(prompt):,} tokens, but the model has {context:,} positions: at most"
                f" {context - len(prompt) + 1:,} tokens can follow, not {tokens:,}",
                code="bad-value",
            )


class Unfolding:
    """Incremental decoding: emits whole characters, and holds back a possible stop string.

    >>> text = Unfolding(Tokenizer.bytes(), stop=["END"])
    >>> [text.add(token) for token in "né ENDE".encode()], text.stopped
    (['n', '', 'é', ' ', '', '', '', ''], True)
    """

    def __init__(self, tokenizer: Tokenizer, prompt: Sequence[int] = (), stop: Sequence[str] = ()) -> None:
        self._tokenizer = tokenizer
        self._stop = [word for word in stop if word]
        # A token decoded alone may lose the space before it. So the ids from `_start` on are
        # decoded together, and the text of the ids up to `_read` is cut off.
        self._ids = list(prompt)
        self._start, self._read = 0, len(prompt)
        self._held = ""  # text that may be the start of a stop string
        self.stopped = False

    def add(self, token: int) -> str:
        """Add a token; return the text that can now be shown."""
        if self.stopped:
            return ""
        self._ids.append(token)
        return self._cleared(self._characters(final=False), final=False)

    def rest(self) -> str:
        """Return the text that was held back, at the end."""
        return "" if self.stopped else self._cleared(self._characters(final=True), final=True)

    def _characters(self, *, final: bool) -> str:
        """Return the new characters whose bytes are complete."""
        before = self._tokenizer.decode(self._ids[self._start : self._read])
        text = self._tokenizer.decode(self._ids[self._start :])
        if len(text) <= len(before) or (text.endswith("�") and not final):
            return ""
        self._start, self._read = self._read, len(self._ids)
        return text[len(before) :]

    def _cleared(self, new: str, *, final: bool) -> str:
        """Return the held and new text that certainly comes before a stop string."""
        text = self._held + new
        ends = [place for word in self._stop if (place := text.find(word)) >= 0]
        self.stopped = bool(ends)
        begun = (size for word in self._stop for size in range(1, len(word)) if text.endswith(word[:size]))
        end = min(ends) if ends else len(text) - (0 if final else max(begun, default=0))
        self._held = text[end:]
        return text[:end]
