"""Tokenise text once into memory-mapped files; batches depend only on the step and the seed.

run/data/train-00000.tokens       see `token_files`
run/data/validation-00000.tokens
run/data/tokenizer.json           the tokenizer that made them
run/data/whole.json               the listing: data, tokenizer, files
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
from tallystick.training.corpus.documents import Document, documents
from tallystick.training.corpus.texts import refuse_changed, texts_of
from tallystick.training.corpus.token_files import HEADER, MAGIC, SPLITS, WHOLE, Split, listing_of, mapped
from tallystick.training.corpus.tokenizer import tokenizer_of

SHARD = 100_000_000  # tokens per file


class Tokens:
    """The tokens of one split, in one or more files."""

    def __init__(self, shards: Sequence[numpy.ndarray[Any, Any]], text_bytes: int) -> None:
        self._shards = shards
        self._bytes = text_bytes  # of the text
        self.count = sum(len(shard) for shard in shards)

    def windows(self, sequence: int) -> int:
        """Return the number of non-overlapping sequences, each with one token after it."""
        return sum(max(0, len(shard) - 1) // sequence for shard in self._shards)

    def batches(self, batch: int, sequence: int) -> int:
        """Return the number of complete batches."""
        return self.windows(sequence) // batch

    def batch(self, number: int, batch: int, sequence: int, *, seed: int | None) -> tuple[Tensor, Tensor]:
        """Return a batch by its number: inputs and next tokens, (batch, sequence) each.

        In each epoch every window occurs once, in an order drawn from the seed and the epoch; a
        seed of None keeps the text's order. There is no state between batches, so a resumed run
        reads the same batches.

        Args:
            number: index of the batch, from 0.
            batch: sequences per batch.
            sequence: tokens per sequence.
            seed: seed of the order, or None.
        """
        count = self.windows(sequence)
        rows = []
        for place in range(number * batch, (number + 1) * batch):
            turn, index = divmod(place, count)
            rows.append(self._window(index if seed is None else int(_order(count, seed, turn)[index]), sequence))
        tokens = torch.from_numpy(numpy.stack(rows).astype(numpy.int64))
        return tokens[:, :-1], tokens[:, 1:]

    def bits_per_byte(self, loss: float) -> float:
        """Convert a loss in nats per token to bits per byte, which compares across tokenizers."""
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
    """The data that a run is trained and evaluated on."""

    train: Tokens
    validation: Tokens
    tokenizer: Tokenizer
    identity: dict[str, list[Any]] = field(default_factory=dict)  # token count and digest of each split


def corpus_of(data: str, *, tokenizer: str, validation: float, folder: Path, sequence: int) -> Corpus:
    """Return the tokens of `data`, tokenising it only if the folder has no listing yet.

    Args:
        data: see `documents`.
        tokenizer: see `tokenizer_of`.
        validation: share of the documents kept for validation, chosen by their names.
        folder: folder of the token files.
        sequence: tokens per sequence; each split must hold at least one sequence.

    Raises:
        BadInput: if the data is empty, not text or shorter than a sequence, if the folder was
            made from other data or by another tokenizer, or if files are damaged.
    """
    said = {"data": data, "tokenizer": tokenizer, "validation": validation}
    if not (folder / WHOLE).exists():
        _make(folder, said, sequence)
    listing = listing_of(folder)
    if listing.made_from != said:
        other = next((key for key in said if listing.made_from.get(key) != said[key]), None)
        was = f"{other} = {quoted(listing.made_from.get(other))}" if other else "more than this run"
        mine = f", but this run has {quoted(said[other])}" if other else ""
        raise BadInput(
            f"{folder} was made with {was}{mine}: choose another out, or remove that folder", code="mismatch"
        )
    refuse_changed(data, listing.texts, folder)
    _refuse_short(listing.splits, data, sequence)
    made_by = Tokenizer.load(folder)
    if made_by.fingerprint != listing.tokenizer:
        raise BadInput(
            f"the tokenizer in {folder} did not make its tokens: remove that folder",
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
                f"{data}: the {split} text has {sum(counts):,} tokens, fewer than sequence + 1 ({sequence} + 1)",
                code="bad-value",
            )


def _make(folder: Path, said: dict[str, Any], sequence: int) -> None:
    """Tokenise all documents into a temporary folder, and rename it when complete."""
    with atomic_folder(folder, parents=True) as partial:
        tokenizer = tokenizer_of(said["tokenizer"], lambda: (document.text for document in documents(said["data"])))
        tokenizer.save(partial)
        texts = texts_of(said["data"])  # before reading: the next run detects changes during it
        dtype = "<u2" if tokenizer.size <= 1 << 16 else "<u4"
        splits = _written(partial, said["data"], tokenizer, said["validation"], dtype)
        _refuse_short(splits, said["data"], sequence)  # and keep nothing: more text may be there next time
        whole = {split: asdict(one) for split, one in splits.items()}
        values = {"made_from": said, "texts": texts, "tokenizer": tokenizer.fingerprint, **whole}
        (partial / WHOLE).write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")


def _written(folder: Path, data: str, tokenizer: Tokenizer, share: float, dtype: str) -> dict[str, Split]:
    """Write the tokens of all documents to files; return each split's listing."""
    writers = {split: _Writer(folder, split, dtype) for split in SPLITS}
    kept: Document | None = None  # the first document is held back: it may be the only one
    found = 0
    for document in documents(data):
        found += 1
        if found == 1:
            kept = document
            continue
        writers[_split(document.name, share)].add(document.text, tokenizer)
    if kept is None:
        raise BadInput(f"{data} holds no text to train on: no file of it is UTF-8 text", code="not-found")
    if found == 1:  # its end is the validation text
        cut = round(len(kept.text) * (1 - share))
        writers["train"].add(kept.text[:cut], tokenizer)
        writers["validation"].add(kept.text[cut:], tokenizer)
    else:  # to a split that is still empty, or to its own
        empty = next((split for split in SPLITS if not writers[split].count), None)
        writers[empty or _split(kept.name, share)].add(kept.text, tokenizer)
    return {split: writers[split].finish() for split in SPLITS}


def _split(name: str, share: float) -> str:
    """Return a document's split, which depends on its name alone."""
    drawn = int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "big") / 2**64
    return "validation" if drawn < share else "train"


class _Writer:
    """A writer of one split's tokens, in files of about `SHARD` tokens."""

    def __init__(self, folder: Path, split: str, dtype: str) -> None:
        self._folder, self._split, self._dtype = folder, split, numpy.dtype(dtype)
        self._texts: list[str] = []
        self._waiting = 0  # characters in them
        self._shards: list[tuple[str, int, str]] = []
        self._open: list[numpy.ndarray[Any, Any]] = []
        self._held = 0  # tokens in them
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
        """Write the open tokens as a file: a header, then the ids."""
        tokens = numpy.concatenate(self._open)
        self._open, self._held = [], 0
        name = f"{self._split}-{len(self._shards):05d}.tokens"
        digest = blake2b(tokens.data, digest_size=16).hexdigest()
        header = json.dumps({"kind": MAGIC, "dtype": self._dtype.str, "count": len(tokens), "digest": digest})
        with (self._folder / name).open("wb") as file:
            file.write(header.encode().ljust(HEADER))
            file.write(tokens.data)
        self._shards.append((name, len(tokens), digest))
