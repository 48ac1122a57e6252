"""Text made tokens once, in memory-mapped files, and batches of them in an order that follows from the step alone.

run/data/train-00000.tokens       see `token_files`
run/data/validation-00000.tokens
run/data/tokenizer.json           what made them
run/data/whole.json               what they were made from, and how many there are
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy
import torch
from torch import Tensor

from tallystick.errors import BadInput, quoted
from tallystick.files.atomic import atomic_folder
from tallystick.models.tokens import Tokenizer
from tallystick.training.documents import Document, documents
from tallystick.training.texts import refuse_changed, texts_of
from tallystick.training.token_files import HEADER, MAGIC, SPLITS, WHOLE, Split, listing_of, mapped
from tallystick.training.tokenizer import tokenizer_of

SHARD = 100_000_000  # tokens in one file


class Tokens:
    """The tokens of one split, in one or several files."""

    def __init__(self, shards: Sequence[numpy.ndarray[Any, Any]], text_bytes: int) -> None:
        self._shards = shards
        self._bytes = text_bytes  # of the text that they stand for
        self.count = sum(len(shard) for shard in shards)

    def windows(self, sequence: int) -> int:
        """Sequences of that length, each with the token after it, that do not overlap."""
        return sum(max(0, len(shard) - 1) // sequence for shard in self._shards)

    def batches(self, batch: int, sequence: int) -> int:
        """Whole batches of them."""
        return self.windows(sequence) // batch

    def batch(self, number: int, batch: int, sequence: int, *, seed: int | None) -> tuple[Tensor, Tensor]:
        """A batch by its number: inputs and the tokens after them, (batch, sequence) each.

        Every window comes once before any comes again, in an order drawn from `seed` and the round; None keeps the order
        of the text. Nothing is remembered from one batch to the next: a run that goes on at a step reads what it would
        have read.
        """
        count = self.windows(sequence)
        rows = []
        for place in range(number * batch, (number + 1) * batch):
            turn, index = divmod(place, count)
            rows.append(self._window(index if seed is None else int(_order(count, seed, turn)[index]), sequence))
        tokens = torch.from_numpy(numpy.stack(rows).astype(numpy.int64))
        return tokens[:, :-1], tokens[:, 1:]

    def bits_per_byte(self, loss: float) -> float:
        """A loss in nats per token as bits per byte of the text: comparable between tokenizers."""
        return loss * self.count / (self._bytes * math.log(2))

    def _window(self, index: int, sequence: int) -> numpy.ndarray[Any, Any]:
        for shard in self._shards:
            held = max(0, len(shard) - 1) // sequence
            if index < held:
                return shard[index * sequence : (index + 1) * sequence + 1]
            index -= held
        raise IndexError(index)


@lru_cache(maxsize=4)
def _order(count: int, seed: int, turn: int) -> numpy.ndarray[Any, Any]:
    return numpy.random.default_rng([seed, turn]).permutation(count)


@dataclass(frozen=True)
class Corpus:
    """What a run is trained and evaluated on."""

    train: Tokens
    validation: Tokens
    tokenizer: Tokenizer
    identity: dict[str, list[Any]] = field(default_factory=dict)  # of each split's tokens, for a run that goes on


def corpus_of(data: str, *, tokenizer: str, validation: float, folder: Path, sequence: int) -> Corpus:
    """The tokens of `data`, made once: a folder that was made from other data, or by another tokenizer, is refused.

    Args:
        data: see `documents`.
        tokenizer: see `tokenizer_of`.
        validation: share of the documents that is kept apart, told by their names.
        folder: where the tokens are kept.
        sequence: tokens of one sequence, of which each split must hold one.

    Raises:
        BadInput: for data that is empty, no text, or shorter than a sequence, and files that are torn.
    """
    said = {"data": data, "tokenizer": tokenizer, "validation": validation}
    if not (folder / WHOLE).exists():
        _make(folder, said, sequence)
    listing = listing_of(folder)
    if listing.made_from != said:
        other = next((key for key in said if listing.made_from.get(key) != said[key]), None)
        was = f"{other} = {quoted(listing.made_from.get(other))}" if other else "more than this run says"
        mine = f", and this run says {quoted(said[other])}" if other else ""
        raise BadInput(f"{folder} was made with {was}{mine}: name another out, or remove that folder", code="mismatch")
    refuse_changed(data, listing.texts, folder)
    _refuse_short(listing.splits, data, sequence)
    made_by = Tokenizer.load(folder)
    if made_by.fingerprint != listing.tokenizer:
        raise BadInput(
            f"the tokenizer in {folder} is not the one that made the tokens beside it: remove that folder",
            code="mismatch",
        )
    train, held = (
        Tokens(
            [mapped(folder / name, count, digest, made_by.size) for name, count, digest in split.shards], split.bytes
        )
        for split in listing.splits.values()
    )
    identity = {f"the {split} tokens": listing.splits[split].identity for split in SPLITS}
    return Corpus(train, held, made_by, identity)


def _refuse_short(splits: Mapping[str, Split], data: str, sequence: int) -> None:
    for split, one in splits.items():
        counts = [count for _, count, _ in one.shards]
        if max(counts, default=0) <= sequence:
            raise BadInput(
                f"{data}: the {split} text has {sum(counts):,} tokens, fewer than a sequence of {sequence} and one",
                code="bad-value",
            )


def _make(folder: Path, said: dict[str, Any], sequence: int) -> None:
    """Tokenise all documents into a folder beside its name, and rename it when it is whole."""
    with atomic_folder(folder, parents=True) as partial:
        tokenizer = tokenizer_of(said["tokenizer"], lambda: (document.text for document in documents(said["data"])))
        tokenizer.save(partial)
        texts = texts_of(said["data"])  # first: what changes while it is read is seen by the next run
        dtype = "<u2" if tokenizer.size <= 1 << 16 else "<u4"
        splits = _written(partial, said["data"], tokenizer, said["validation"], dtype)
        _refuse_short(splits, said["data"], sequence)  # and keep nothing: there may be more text next time
        whole = {split: asdict(one) for split, one in splits.items()}
        values = {"made_from": said, "texts": texts, "tokenizer": tokenizer.fingerprint, **whole}
        (partial / WHOLE).write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")


def _written(folder: Path, data: str, tokenizer: Tokenizer, share: float, dtype: str) -> dict[str, Split]:
    """The tokens of all documents in files of a folder; what they are, for each split."""
    writers = {split: _Writer(folder, split, dtype) for split in SPLITS}
    kept: Document | None = None  # the first is held back: it may be the only one
    found = 0
    for document in documents(data):
        found += 1
        if found == 1:
            kept = document
            continue
        writers[_split(document.name, share)].add(document.text, tokenizer)
    if kept is None:
        raise BadInput(f"{data} holds no text to train on: no file of it is UTF-8 text", code="not-found")
    if found == 1:  # its end is kept apart
        cut = round(len(kept.text) * (1 - share))
        writers["train"].add(kept.text[:cut], tokenizer)
        writers["validation"].add(kept.text[cut:], tokenizer)
    else:  # to whichever split has nothing yet, or to its own
        empty = next((split for split in SPLITS if not writers[split].count), None)
        writers[empty or _split(kept.name, share)].add(kept.text, tokenizer)
    return {split: writers[split].finish() for split in SPLITS}


def _split(name: str, share: float) -> str:
    """Where a document belongs: the same for ever, whatever other documents there are."""
    drawn = int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "big") / 2**64
    return "validation" if drawn < share else "train"


class _Writer:
    """Tokens of one split, written to shards of a limited size."""

    def __init__(self, folder: Path, split: str, dtype: str) -> None:
        self._folder, self._split, self._dtype = folder, split, numpy.dtype(dtype)
        self._texts: list[str] = []
        self._waiting = 0  # characters of them
        self._shards: list[tuple[str, int, str]] = []
        self._open: list[numpy.ndarray[Any, Any]] = []
        self._held = 0  # tokens of these
        self.count = 0
        self.bytes = 0

    def add(self, text: str, tokenizer: Tokenizer) -> None:
        self._texts.append(text)
        self._waiting += len(text)
        self.count += 1
        self.bytes += len(text.encode())
        self._tokenizer = tokenizer
        if self._waiting > 1 << 22:
            self._encode()

    def finish(self) -> Split:
        self._encode()
        if self._open:
            self._close()
        return Split(tuple(self._shards), self.bytes)

    def _encode(self) -> None:
        if not self._texts:
            return
        end = [] if self._tokenizer.end is None else [self._tokenizer.end]
        for ids in self._tokenizer.encode_all(self._texts):
            tokens = numpy.array(ids + end, dtype=self._dtype)
            self._open.append(tokens)
            self._held += len(tokens)
            if self._held >= SHARD:
                self._close()
        self._texts, self._waiting = [], 0

    def _close(self) -> None:
        """Write what is there as a shard: a header that says what it is, then the ids."""
        tokens = numpy.concatenate(self._open)
        self._open, self._held = [], 0
        name = f"{self._split}-{len(self._shards):05d}.tokens"
        digest = blake2b(tokens.data, digest_size=16).hexdigest()
        header = json.dumps({"kind": MAGIC, "dtype": self._dtype.str, "count": len(tokens), "digest": digest})
        with (self._folder / name).open("wb") as file:
            file.write(header.encode().ljust(HEADER))
            file.write(tokens.data)
        self._shards.append((name, len(tokens), digest))
