"""Tokenizers: a wrapper of the `tokenizers` library, and one whose ids are bytes.

The byte tokenizer needs no file and no training. Ids 0 to 255 are the bytes of UTF-8; 256 ends
a text. Saved next to a checkpoint it is a `tokenizer.json`, which the library reads too.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from itertools import takewhile
from pathlib import Path
from typing import Any

from tallystick.core.config import TOKENIZER
from tallystick.errors import BadInput, quoted
from tallystick.extras import needing
from tallystick.files.atomic import write_file
from tallystick.files.texts import read_json, read_text

BYTES = "bytes"
END = "<|endoftext|>"
_ENDS = (END, "</s>", "<eos>", "<|end_of_text|>", "<|im_end|>")


class Tokenizer:
    """A tokenizer of the `tokenizers` library, with the ids that a decoder needs."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self.size: int = max(tokenizer.get_vocab(with_added_tokens=True).values()) + 1  # rows that the embedding needs
        ends = (tokenizer.token_to_id(word) for word in _ENDS)
        self.end: int | None = next((number for number in ends if number is not None), None)  # id that ends a text
        between = tokenizer.token_to_id(END)
        self.between: tuple[int, ...] = (
            () if between is None else (between,)
        )  # separates texts in training, as in GPT-2
        whole = tokenizer.encode("a")
        added = zip(whole.ids, whole.special_tokens_mask, strict=True)
        self.begin: tuple[int, ...] = tuple(
            token for token, _ in takewhile(lambda one: one[1], added)
        )  # ids set before a text

    @classmethod
    def bytes(cls, *, end: bool = True) -> Tokenizer:
        """Return the byte tokenizer; without `end` it fits an embedding of 256 rows."""
        library = _library()
        words = [_as_character(byte) for byte in range(256)]
        tokenizer = library.Tokenizer(library.models.BPE({word: byte for byte, word in enumerate(words)}, []))
        tokenizer.pre_tokenizer = library.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        tokenizer.decoder = library.decoders.ByteLevel()
        tokenizer.add_special_tokens([END] if end else [])
        return cls(tokenizer)

    @classmethod
    def load(cls, path: Path) -> Tokenizer:
        """Read a `tokenizer.json`, a folder with one, or GPT-2's `vocab.json` and `merges.txt`.

        Raises:
            BadInput: if there is no tokenizer, or it cannot be read.
        """
        library = _library()
        file = path / TOKENIZER if path.is_dir() else path
        if file.exists():
            text = read_text(file)
            try:
                return cls(library.Tokenizer.from_str(text))
            except Exception as error:  # the library raises plain Exceptions
                raise BadInput(f"{file} is not a tokenizer: {error}", code="malformed") from None
        vocabulary, merges = path / "vocab.json", path / "merges.txt"
        if not (vocabulary.exists() and merges.exists()):
            raise BadInput(
                f"{path} holds no tokenizer, neither {TOKENIZER} nor vocab.json with merges.txt: use --tokenizer"
                " bytes or a path",
                code="not-found",
            )
        lines = [line for line in read_text(merges).splitlines() if line and not line.startswith("#version")]
        try:
            model = library.models.BPE(read_json(vocabulary), [tuple(line.split(" ", 1)) for line in lines])
        except Exception as error:
            raise BadInput(f"{vocabulary} and {merges.name} make no tokenizer: {error}", code="malformed") from None
        tokenizer = library.Tokenizer(model)
        tokenizer.pre_tokenizer = library.pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = library.decoders.ByteLevel()
        tokenizer.add_special_tokens([END] if tokenizer.token_to_id(END) is not None else [])
        return cls(tokenizer)

    @classmethod
    def trained(cls, texts: Iterable[str], size: int) -> Tokenizer:
        """Train a byte-level BPE (Radford et al. 2019, section 2.2).

        Args:
            texts: texts to train on.
            size: vocabulary size, with the 256 bytes and END: 257 or more.

        Raises:
            BadInput: if `size` is too small.
        """
        library = _library()
        if size < 257:
            raise BadInput(
                f"a BPE with {size} entries is too small for the 256 bytes and an end token", code="bad-value"
            )
        tokenizer = library.Tokenizer(library.models.BPE())
        tokenizer.pre_tokenizer = library.pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = library.decoders.ByteLevel()
        alphabet = library.pre_tokenizers.ByteLevel.alphabet()
        trainer = library.trainers.BpeTrainer(
            vocab_size=size, initial_alphabet=alphabet, special_tokens=[END], show_progress=False
        )
        tokenizer.train_from_iterator(texts, trainer)
        return cls(tokenizer)

    @property
    def fingerprint(self) -> str:
        """A hash of everything that decides an id: equal if texts get equal ids."""
        said = json.dumps(json.loads(self._tokenizer.to_str()), sort_keys=True)
        return blake2b(said.encode(), digest_size=16).hexdigest()

    @property
    def reads_bytes(self) -> bool:
        """Whether the ids are bytes, as those of `Tokenizer.bytes`."""
        return any(self.fingerprint == self.bytes(end=end).fingerprint for end in (True, False))

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text, without special tokens around it.

        Raises:
            BadInput: if the text is not valid Unicode, as a command line argument may be.
        """
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise BadInput(
                f"{quoted(text)} is not text: character {error.start + 1} is a byte that is not UTF-8",
                code="malformed",
            ) from None
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of several texts, in parallel; special tokens in a text are not parsed."""
        return [found.ids for found in self._plainly(texts)]

    def encode_counting(self, text: str) -> tuple[list[int], int]:
        """Return the ids as `encode_all` does, and the length of the first token.

        Returns:
            Token ids; bytes of UTF-8 in the first token.
        """
        (found,) = self._plainly([text])
        if not found.ids:
            return [], 0
        if isinstance(self._tokenizer.decoder, _library().decoders.ByteLevel):  # one character per byte
            return found.ids, len(found.tokens[0])
        return found.ids, len(text[: found.offsets[0][1]].encode())

    def _plainly(self, texts: Sequence[str]) -> list[Any]:
        self._tokenizer.encode_special_tokens = True
        try:
            found: list[Any] = self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
            return found
        finally:
            self._tokenizer.encode_special_tokens = False

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids; invalid UTF-8 becomes �."""
        text: str = self._tokenizer.decode(list(ids), skip_special_tokens=True)
        return text

    def save(self, folder: Path) -> None:
        """Write `tokenizer.json` into a folder, atomically."""
        write_file(folder / TOKENIZER, self._tokenizer.to_str(pretty=False).encode())


def _library() -> Any:
    with needing("tokenizing"):
        import tokenizers
    return tokenizers


def _as_character(byte: int) -> str:
    """Return the printable character for a byte, as in GPT-2's vocabulary and the library."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    if byte in printable:
        return chr(byte)
    return chr(256 + [other for other in range(256) if other not in printable].index(byte))
