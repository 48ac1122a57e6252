"""Load a decoder: Hugging Face checkpoints, nanoGPT's ``ckpt.pt``, llama2.c's ``.bin``.

decoder = load_pretrained("path/to/gpt2", dropout=0.1)
decoder = load_pretrained("org/name", dtype="bfloat16")      # downloads with huggingface_hub
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import torch

from tallystick.arguments import named
from tallystick.core.config import CONFIG, TOKENIZER
from tallystick.errors import BadInput, quoted, shown
from tallystick.formats.folder import TORCH_INDEX, TORCH_SINGLE, find_safetensors, names_in
from tallystick.models.checkpoints import lazy_tensors, llama2c, nanogpt, pickles
from tallystick.models.checkpoints.lazy_tensors import Held
from tallystick.models.checkpoints.load_weights import assembled
from tallystick.models.config import DecoderConfig
from tallystick.models.decoder import Decoder
from tallystick.models.families import config_of
from tallystick.models.surgery import set_dropout
from tallystick.sources.checkpoint.tokenizer import rows_needed
from tallystick.sources.locate import locate_weights


@named
def load_pretrained(
    source: str | os.PathLike[str],
    *,
    dropout: float | None = None,
    tie: bool | None = None,
    tie_word_embeddings: bool | None = None,
    dtype: torch.dtype | str | None = None,
    device: torch.device | str = "cpu",
    check_finite: bool = False,
) -> Decoder:
    """Load a decoder with trained weights, in evaluation mode.

    Weights with the decoder's dtype and layout are not read: their file is memory-mapped
    privately, so later writes stay in memory. Others are converted some rows at a time.

    Args:
        source: a folder with a ``config.json`` and safetensors (or ``.bin``, loaded with
            weights only); one of its files or indexes; a repository of the Hugging Face hub;
            nanoGPT's ``ckpt.pt``; llama2.c's ``.bin``.
        dropout: rate of every dropout, 0 to 1; None keeps the config's.
        tie: True ties the head to the embedding and ignores a stored head. False gives the
            head its own weight, a copy of the embedding if none is stored. None follows the
            config.
        tie_word_embeddings: the config's name for `tie`; give one of the two.
        dtype: such as ``torch.bfloat16`` or ``"bfloat16"``; None keeps the checkpoint's.
        device: device of the decoder.
        check_finite: whether to read all values, and to refuse NaN and infinity by the names
            of their tensors.

    Returns:
        The decoder, with tied weights as one Parameter.

    Raises:
        BadInput: if something cannot be read or does not fit, or `tie` contradicts
            `tie_word_embeddings`.

    >>> import tempfile
    >>> from tallystick.models import save_pretrained
    >>> decoder = Decoder.of("gpt2", vocab_size=50, n_embd=8, n_layer=1, n_head=2, n_positions=6)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_pretrained(decoder, f"{folder}/model")
    ...     loaded = load_pretrained(f"{folder}/model")
    >>> loaded.head.weight is loaded.embedding.weight
    True
    >>> torch.equal(loaded.embedding.weight, decoder.embedding.weight)
    True
    """
    tie = _one_of(tie, tie_word_embeddings)
    path = locate_weights(source)
    config, held = _read(path)
    decoder = assembled(
        config,
        held,
        where=str(path),
        tie=tie,
        dtype=_dtype(dtype),
        device=device,
        check_finite=check_finite,
    )
    if dropout is not None:
        set_dropout(decoder, dropout)
    return decoder


def _one_of(tie: bool | None, tie_word_embeddings: bool | None) -> bool | None:
    if tie is not None and tie_word_embeddings is not None and tie != tie_word_embeddings:
        raise BadInput(
            f"tie is {tie}, but tie_word_embeddings is {tie_word_embeddings}: give one of them",
            code="conflicting-options",
        )
    return tie_word_embeddings if tie is None else tie


def _read(path: Path) -> tuple[DecoderConfig, Mapping[str, Held]]:
    """Read the config and the tensors at a path; the tensors have their family's names."""
    if path.is_dir():
        return _from_folder(path, _weights_in(path))
    if path.name.endswith((".safetensors", ".index.json")):
        return _from_folder(path.parent, path)
    if not pickles.is_pickle(path):
        return llama2c.read(path)
    values = pickles.unpickled(path)
    if nanogpt.is_checkpoint(values):
        return nanogpt.read(values, path)
    return _config_in(path.parent), pickles.tensors_of(values, path)


def _from_folder(folder: Path, weights: Path) -> tuple[DecoderConfig, Mapping[str, Held]]:
    config = _config_in(folder)
    needed = rows_needed(folder)
    if needed > config.vocab_size:
        raise BadInput(
            f"{folder}: the ids of {TOKENIZER} end at {needed - 1:,}, but the embedding has"
            f" {config.vocab_size:,} rows: it is another model's tokenizer",
            code="mismatch",
        )
    safe = weights.name.endswith((".safetensors", ".safetensors.index.json"))
    return config, (lazy_tensors if safe else pickles).held_by(weights)


def _config_in(folder: Path) -> DecoderConfig:
    if not (folder / CONFIG).exists():
        raise BadInput(f"{folder} has no {CONFIG}, which is needed to read the weights", code="not-found")
    config = config_of(folder)
    if packed := config.origin.get("quantization_config"):
        raise BadInput(
            f"{folder / CONFIG} has quantization_config {shown(packed)}: quantised weights are not supported",
            code="unsupported",
        )
    return config


def _weights_in(folder: Path) -> Path:
    """Return the checkpoint in a folder: safetensors if there are any, else pickled."""
    found = find_safetensors(folder, names_in(folder))
    for name in (TORCH_INDEX, TORCH_SINGLE):
        if found is None and (folder / name).exists():
            found = folder / name
    if found is None:
        raise BadInput(f"{folder} holds no weights: neither safetensors nor {TORCH_SINGLE}", code="not-found")
    return found


def _dtype(given: torch.dtype | str | None) -> torch.dtype | None:
    dtype = getattr(torch, given.removeprefix("torch."), None) if isinstance(given, str) else given
    if dtype is None and given is None:
        return None
    if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
        raise BadInput(f"dtype is {quoted(given)}, expected one such as float32, float16 or bfloat16", code="bad-value")
    return dtype
