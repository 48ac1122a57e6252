"""Save a decoder as a Hugging Face folder: ``config.json`` and safetensors."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tallystick.arguments import named
from tallystick.core.config import CONFIG
from tallystick.core.units import parse_size
from tallystick.errors import BadInput, shown
from tallystick.files.atomic import atomic_folder
from tallystick.formats.folder import INDEX, SINGLE
from tallystick.formats.safetensors import header_bytes
from tallystick.models.checkpoints.conversion import drawn, written_by
from tallystick.models.checkpoints.lazy_tensors import raw
from tallystick.models.checkpoints.names import Stored
from tallystick.models.decoder import Decoder
from tallystick.models.families import DROPOUTS, config_of, find

_METADATA = {"format": "pt"}  # older versions of transformers refuse a file without it
_WEIGHTS = re.compile(r"(pytorch_)?model\b.*\.(safetensors|bin|index\.json)")  # files of an older checkpoint


@named
def save_pretrained(
    decoder: Decoder,
    folder: str | os.PathLike[str],
    *,
    max_shard_size: int | str | None = None,
    overwrite: bool = False,
) -> None:
    """Save a decoder, each tensor once. The folder appears only when it is complete.

    Args:
        decoder: a decoder of a family. A dropout without a key in the family's config is lost.
        folder: folder to write.
        max_shard_size: bytes of tensors per file, as a number or such as ``"5GB"``; a larger
            tensor gets a file of its own. None writes one file.
        overwrite: whether to replace an existing checkpoint folder; its other files, such as
            the tokenizer's, are kept.

    Raises:
        BadInput: if the folder exists, or cannot be written. Existing files are then unchanged.

    >>> import tempfile
    >>> from pathlib import Path
    >>> decoder = Decoder.of("gpt2", vocab_size=50, n_embd=8, n_layer=1, n_head=2, n_positions=6)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_pretrained(decoder, Path(folder) / "model")
    ...     sorted(path.name for path in (Path(folder) / "model").iterdir())
    ['config.json', 'model.safetensors']
    """
    out = Path(os.path.realpath(folder))
    limit = parse_size(max_shard_size) if isinstance(max_shard_size, str) else max_shard_size
    if max_shard_size is not None and (limit is None or limit < 1):
        raise BadInput(
            f"max_shard_size is {shown(max_shard_size)}, expected bytes, or a size such as 5GB", code="bad-value"
        )
    if overwrite and out.exists() and not (out / CONFIG).is_file():
        raise BadInput(f"{out} holds no {CONFIG}: it is not a checkpoint, so it is not overwritten", code="unwritable")
    with atomic_folder(out, replace=overwrite) as partial:
        if out.exists():
            written = [path.name for path in out.iterdir() if path.name == CONFIG or _WEIGHTS.fullmatch(path.name)]
            shutil.copytree(
                out,
                partial,
                symlinks=True,
                ignore=lambda where, _: written if Path(where) == out else [],
                copy_function=_linked,
                dirs_exist_ok=True,
            )
        write_decoder(decoder, partial, limit)


def write_decoder(decoder: Decoder, folder: Path, limit: int | None = None) -> None:
    """Write a decoder's config and weights into an existing folder.

    Args:
        decoder: a decoder of a family.
        folder: folder that has none of these files yet.
        limit: bytes of tensors per file; None writes one file.

    Raises:
        BadInput: if the family's config cannot express the decoder, or it has no values.
    """
    tensors = written_by(decoder)
    config = _config(decoder)
    if any(parameter.is_meta for parameter in decoder.parameters()):
        raise BadInput("the decoder has no values yet: it is on the meta device", code="unsupported")
    _write(folder / CONFIG, _json(config))
    _write_weights(decoder, tensors, folder, limit)


def _config(decoder: Decoder) -> dict[str, Any]:
    """Return the config that the decoder was built from, with its current dtype."""
    origin = decoder.config.origin
    if _without_dropout(config_of(origin)) != _without_dropout(decoder.config):
        raise BadInput("the decoder's config was changed in a way that its family cannot express", code="unsupported")
    values = {key: value for key, value in origin.items() if key not in ("dtype", "torch_dtype")}
    class_name = find(origin["model_type"]).architecture.class_name
    said = {"architectures": [class_name]} if class_name else {}
    return {**said, **values, **said, "dtype": _word(decoder.embedding.weight)}


def _without_dropout(config: Any) -> Any:
    return replace(config, **dict.fromkeys(DROPOUTS, 0.0))


def _word(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _linked(source: str, out: str) -> None:
    """Hard-link a file, or copy it if the file system has no hard links."""
    try:
        os.link(source, out)
    except OSError:
        shutil.copy2(source, out)


def _write_weights(decoder: Decoder, tensors: Mapping[str, Stored], out: Path, limit: int | None) -> None:
    ours = dict(decoder.state_dict())

    def kind(name: str) -> tuple[str, str, tuple[int, ...], int]:
        stored = tensors[name]
        first = stored.parts[0].of(ours)
        return name, _word(first), stored.shape, torch.Size(stored.shape).numel() * first.itemsize

    shards: list[list[tuple[str, str, tuple[int, ...], int]]] = []
    room = 0
    for one in map(kind, tensors):
        if not shards or (limit is not None and room < one[-1]):
            shards.append([])
            room = limit or 0
        shards[-1].append(one)
        room -= one[-1]
    files = (
        [SINGLE]
        if len(shards) == 1
        else [f"model-{number:05}-of-{len(shards):05}.safetensors" for number in range(1, len(shards) + 1)]
    )
    for file, shard in zip(files, shards, strict=True):
        _write(out / file, header_bytes(shard, _METADATA), (drawn(tensors[name], ours) for name, *_ in shard))
    if len(shards) > 1:
        index = {
            "metadata": {"total_size": sum(size for shard in shards for *_, size in shard)},
            "weight_map": {name: file for file, shard in zip(files, shards, strict=True) for name, *_ in shard},
        }
        _write(out / INDEX, _json(index))


def _json(values: Mapping[str, Any]) -> bytes:
    return json.dumps(values, indent=2, ensure_ascii=False).encode() + b"\n"


def _write(path: Path, start: bytes, tensors: Iterable[Tensor] = ()) -> None:
    with path.open("wb") as file:
        file.write(start)
        for tensor in tensors:
            values = tensor.cpu()  # keeps the bytes alive while they are written
            file.write(raw(values))
