"""Text to ids and back: a tokenizer of the `tokenizers` library, or bytes.

Bytes need no file and no training: ids 0 to 255 are the bytes of UTF-8, 256 ends a text. Kept beside a checkpoint, they are
a `tokenizer.json` too, which that library reads.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from itertools import takewhile
from pathlib import Path
from typing import Any

from tallystick.errors import BadInput, quoted
from tallystick.extras import needing
from tallystick.files.atomic import write_file
from tallystick.files.texts import read_json, read_text
from tallystick.sources.checkpoint.tokenizer import TOKENIZER

BYTES = "bytes"
END = "<|endoftext|>"
_ENDS = (END, "</s>", "<eos>", "<|end_of_text|>", "<|im_end|>")


class Tokenizer:
    """Of the `tokenizers` library, with what a decoder needs to know of it."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self.size: int = max(tokenizer.get_vocab(with_added_tokens=True).values()) + 1  # rows that an embedding needs
        ends = (tokenizer.token_to_id(word) for word in _ENDS)
        self.end: int | None = next((number for number in ends if number is not None), None)  # of a text
        between = tokenizer.token_to_id(END)
        self.between = () if between is None else (between,)  # what stood between the texts of training, in GPT-2's way
        whole = tokenizer.encode("a")
        added = zip(whole.ids, whole.special_tokens_mask, strict=True)
        self.begin = tuple(token for token, _ in takewhile(lambda one: one[1], added))  # what it sets before a text

    @classmethod
    def bytes(cls, *, end: bool = True) -> Tokenizer:
        """The one that needs no file; without the end of a text it is for an embedding of 256 rows."""
        library = _library()
        words = [_as_character(byte) for byte in range(256)]
        tokenizer = library.Tokenizer(library.models.BPE({word: byte for byte, word in enumerate(words)}, []))
        tokenizer.pre_tokenizer = library.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        tokenizer.decoder = library.decoders.ByteLevel()
        tokenizer.add_special_tokens([END] if end else [])
        return cls(tokenizer)

    @classmethod
    def load(cls, path: Path) -> Tokenizer:
        """From a `tokenizer.json`, or a folder with one or with GPT-2's `vocab.json` and `merges.txt`.

        Raises:
            BadInput: where there is none, or it cannot be read.
        """
        library = _library()
        file = path / TOKENIZER if path.is_dir() else path
        if file.exists():
            text = read_text(file)
            try:
                return cls(library.Tokenizer.from_str(text))
            except Exception as error:  # the library raises nothing narrower
                raise BadInput(f"{file} is no tokenizer: {error}", code="malformed") from None
        vocabulary, merges = path / "vocab.json", path / "merges.txt"
        if not (vocabulary.exists() and merges.exists()):
            raise BadInput(
                f"{path} holds no tokenizer, neither {TOKENIZER} nor vocab.json with merges.txt: say --tokenizer bytes or a path",
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
        """A byte-level BPE with `size` entries, the end of a text among them (Radford et al. 2019, section 2.2)."""
        library = _library()
        if size < 257:
            raise BadInput(f"a BPE of {size} entries cannot hold the 256 bytes and the end of a text", code="bad-value")
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
        """Of all that decides an id: equal for tokenizers that read texts alike."""
        said = json.dumps(json.loads(self._tokenizer.to_str()), sort_keys=True)
        return blake2b(said.encode(), digest_size=16).hexdigest()

    @property
    def reads_bytes(self) -> bool:
        """Whether its ids are bytes, as those of `bytes` are."""
        return any(self.fingerprint == self.bytes(end=end).fingerprint for end in (True, False))

    def encode(self, text: str) -> list[int]:
        """The ids of a text, nothing added; of a word on the command line, which may be no text, `BadInput`."""
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise BadInput(
                f"{quoted(text)} is no text: character {error.start + 1} stands for a byte that is not UTF-8",
                code="malformed",
            ) from None
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of several texts at once, on all cores; a text that spells a special token out does not get it."""
        return [found.ids for found in self._plainly(texts)]

    def encode_counting(self, text: str) -> tuple[list[int], int]:
        """The ids of a text as `encode_all` gives them, and how many bytes of it in UTF-8 the first one stands for."""
        (found,) = self._plainly([text])
        if not found.ids:
            return [], 0
        if isinstance(self._tokenizer.decoder, _library().decoders.ByteLevel):  # each byte is a character there
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
        """The text of ids; bytes that are no character become �."""
        text: str = self._tokenizer.decode(list(ids), skip_special_tokens=True)
        return text

    def save(self, folder: Path) -> None:
        """Write `tokenizer.json` into a folder, whole or not at all."""
        write_file(folder / TOKENIZER, self._tokenizer.to_str(pretty=False).encode())


def _library() -> Any:
    with needing("tokenizing"):
        import tokenizers
    return tokenizers


def _as_character(byte: int) -> str:
    """The printable character that stands for a byte in GPT-2's vocabulary, as the library's byte level has it."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    if byte in printable:
        return chr(byte)
    return chr(256 + [other for other in range(256) if other not in printable].index(byte))
