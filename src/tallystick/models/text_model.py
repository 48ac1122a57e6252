"""A decoder that reads and writes text: with its tokenizer, and the tokens that begin and end one.

model = TextModel.load("path/to/gpt2")
writing = model.write(["Once upon a time"], tokens=50, sampling=Sampling(temperature=0.8), seed=1)
for pieces in writing:  # what has come for each prompt
    print(pieces[0], end="", flush=True)
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch

from tallystick.errors import BadInput, quoted, shown
from tallystick.files.texts import read_json
from tallystick.models.checkpoint import load_pretrained
from tallystick.models.decoder import Decoder
from tallystick.models.generation import Unfolding, stream
from tallystick.models.sampling import Sampling
from tallystick.models.tokens import BYTES, Tokenizer
from tallystick.sources.locate import locate_weights

GENERATION_CONFIG = "generation_config.json"
COMPUTED = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
TOKENS = 100  # that are written where nobody says how many


@dataclass(frozen=True)
class TextModel:
    """A decoder and its tokenizer."""

    decoder: Decoder
    tokenizer: Tokenizer
    begin: tuple[int, ...]  # what to go on from where there is no prompt
    ends: frozenset[int]  # tokens that end a text

    @classmethod
    def load(
        cls,
        source: str | os.PathLike[str],
        *,
        tokenizer: str | os.PathLike[str] | None = None,
        dtype: torch.dtype | str | None = None,
        device: torch.device | str = "cpu",
    ) -> TextModel:
        """A checkpoint, with the tokenizer beside it or another.

        Args:
            source: what `load_pretrained` takes.
            tokenizer: a file, a folder with one, or ``"bytes"``; None is the one beside the weights.
            dtype: of the decoder; None is that of the stored tensors.
            device: where the decoder is to be.

        Raises:
            BadInput: for what cannot be read, and a tokenizer with ids for which the embedding has no row.
        """
        path = locate_weights(source)
        decoder = load_pretrained(path, dtype=dtype, device=_device(device))
        if decoder.embedding.weight.dtype not in COMPUTED:
            raise BadInput(
                f"nothing is computed in {decoder.embedding.weight.dtype}: take bfloat16 or another wide enough",
                code="unsupported",
            )
        rows = decoder.config.vocab_size
        folder = path if path.is_dir() else path.parent
        said: Mapping[str, Any] = {}
        if tokenizer is None:
            found = Tokenizer.load(folder)
            extra = folder / GENERATION_CONFIG
            said = {**decoder.config.origin, **(_object(extra) if extra.exists() else {})}
        else:
            found = Tokenizer.bytes(end=rows > 256) if tokenizer == BYTES else Tokenizer.load(Path(tokenizer))
        if found.size > rows:
            raise BadInput(
                f"the tokenizer's ids end at {found.size - 1:,}, and the embedding of {path} has {rows:,} rows:"
                " it is the tokenizer of another model",
                code="mismatch",
            )
        first, ends = (
            tuple(token for token in _ids(said, key) if token < found.size) for key in ("bos_token_id", "eos_token_id")
        )
        own = () if found.end is None else (found.end,)
        return cls(decoder, found, found.begin or first or found.between, frozenset(ends or own))

    def prompt(self, text: str) -> list[int]:
        """The ids that a text is gone on from: what begins one, and its own."""
        return [*self.tokenizer.begin, *self.tokenizer.encode(text)] if text else list(self.begin)

    def write(
        self,
        prompts: Sequence[str],
        *,
        tokens: int | None = None,
        sampling: Sampling | None = None,
        stop: Sequence[str] = (),
        seed: int | None = None,
        compiled: bool = False,
    ) -> Writing:
        """What follows each prompt, piece by piece.

        Args:
            prompts: an empty one is gone on from as from the beginning of a text, where the model has a token for that.
            tokens: to write after each, at most; None is `TOKENS`, or as many as the model has positions for.
            sampling: how a token is chosen; the most probable one by default.
            stop: strings that end a text, and are left out of it.
            seed: of the draws.
            compiled: whether the step of one token is compiled, as `generation.stream` says.

        Raises:
            BadInput: as `generation.stream`.
        """
        return Writing(self, prompts, tokens, sampling, stop, seed, compiled)


@dataclass
class Continuation:
    """What follows a prompt, as far as it has come."""

    prompt: str
    text: str = ""
    tokens: int = 0
    ended: Literal["stop", "length"] | None = None  # by a token or a string that ends it, or by how many there may be


class Writing:
    """Texts that are being written: iterate over it, once."""

    def __init__(
        self,
        model: TextModel,
        prompts: Sequence[str],
        tokens: int | None,
        sampling: Sampling | None,
        stop: Sequence[str],
        seed: int | None,
        compiled: bool,
    ) -> None:
        read = [model.prompt(prompt) for prompt in prompts]
        self.read = sum(map(len, read))  # tokens of all prompts
        if tokens is None:
            tokens = min(TOKENS, max(1, model.decoder.config.context + 1 - max(map(len, read), default=0)))
        self.continuations = [Continuation(prompt) for prompt in prompts]
        self._unfoldings = [Unfolding(model.tokenizer, ids, stop) for ids in read]
        self._steps = stream(
            model.decoder,
            read,
            tokens=tokens,
            sampling=sampling,
            stop=model.ends,
            vocabulary=model.tokenizer.size,
            seed=seed,
            compiled=compiled,
        )

    def __iter__(self) -> Iterator[list[str]]:
        """The text that has come for each prompt since the last step, often none."""
        each = list(zip(self.continuations, self._unfoldings, strict=True))
        with closing(self._steps):
            for step in self._steps:
                yield [_taken(*one, token) for one, token in zip(each, step, strict=True)]
                if all(continuation.ended for continuation in self.continuations):
                    return
        rest = [_ended(*one, "length") for one in each]
        if any(rest):
            yield rest


def _taken(continuation: Continuation, unfolding: Unfolding, token: int | None) -> str:
    if continuation.ended:
        return ""
    if token is None:
        return _ended(continuation, unfolding, "stop")
    piece = unfolding.add(token)
    continuation.tokens += 1
    continuation.text += piece
    if unfolding.stopped:
        continuation.ended = "stop"
    return piece


def _ended(continuation: Continuation, unfolding: Unfolding, why: Literal["stop", "length"]) -> str:
    if continuation.ended:
        return ""
    continuation.ended = why
    piece = unfolding.rest()
    continuation.text += piece
    return piece


def _device(device: torch.device | str) -> torch.device:
    """One that is there."""
    try:
        found = torch.device(device)
        torch.empty(1, device=found).tolist()  # on a device without values that fails
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        why = str(error).strip().partition("\n")[0]
        raise BadInput(f"device {quoted(str(device))} cannot be used: {why}", code="bad-value") from None
    return found


def _object(path: Path) -> Mapping[str, Any]:
    values = read_json(path)
    if not isinstance(values, dict):
        raise BadInput(f"{path} holds {shown(values)}, expected an object", code="malformed")
    return values


def _ids(said: Mapping[str, Any], key: str) -> list[int]:
    """One id, a list of them, or none."""
    value = said.get(key)
    ids = value if isinstance(value, list) else [] if value is None else [value]
    if not all(type(token) is int and token >= 0 for token in ids):
        raise BadInput(f"{key} is {shown(value)}, expected an id or a list of ids", code="bad-value")
    return ids
