"""A decoder as a folder that transformers reads: ``config.json``, and safetensors under its family's names."""

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

from tallystick.core.config import CONFIG
from tallystick.core.units import parse_size
from tallystick.errors import BadInput, shown
from tallystick.files.atomic import atomic_folder
from tallystick.formats.folder import INDEX, SINGLE
from tallystick.formats.safetensors import header_bytes
from tallystick.models.conversion import drawn, written_by
from tallystick.models.decoder import Decoder
from tallystick.models.families import DROPOUTS, config_of, find
from tallystick.models.lazy_tensors import raw
from tallystick.models.names import Stored

_METADATA = {"format": "pt"}  # older versions of transformers refuse a file that does not say it
_WEIGHTS = re.compile(r"(pytorch_)?model\b.*\.(safetensors|bin|index\.json)")  # what an older checkpoint left


def save_pretrained(
    decoder: Decoder,
    folder: str | os.PathLike[str],
    *,
    max_shard_size: int | str | None = None,
    overwrite: bool = False,
) -> None:
    """Write a decoder, each tensor once. The folder appears under its name when it is whole.

    Args:
        decoder: of a family. A dropout that its family's config has no word for is not kept.
        folder: to write.
        max_shard_size: bytes of tensors in one file, as a number or such as ``"5GB"``; a larger tensor has a file of its
            own. None is one file for all.
        overwrite: whether a checkpoint's folder of that name may be replaced; its other files, as of a tokenizer, stay.

    Raises:
        BadInput: when the folder exists, and when the disk does not take it. What was there before is then untouched.
    """
    out = Path(os.path.realpath(folder))
    limit = parse_size(max_shard_size) if isinstance(max_shard_size, str) else max_shard_size
    if max_shard_size is not None and (limit is None or limit < 1):
        raise BadInput(
            f"max_shard_size is {shown(max_shard_size)}, expected bytes, or a size such as 5GB", code="bad-value"
        )
    if overwrite and out.exists() and not (out / CONFIG).is_file():
        raise BadInput(f"{out} holds no {CONFIG}: what is no checkpoint is not overwritten", code="unwritable")
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
    """Write the config and the weights of a decoder into a folder that is there.

    Args:
        decoder: of a family.
        folder: where none of these files is yet.
        limit: bytes of tensors in one file; None is one file for all.

    Raises:
        BadInput: for a decoder that its family has no words for, or that has no values.
    """
    tensors = written_by(decoder)
    config = _config(decoder)
    if any(parameter.is_meta for parameter in decoder.parameters()):
        raise BadInput("the decoder has no values yet: it is on the meta device", code="unsupported")
    _write(folder / CONFIG, _json(config))
    _write_weights(decoder, tensors, folder, limit)


def _config(decoder: Decoder) -> dict[str, Any]:
    """What the decoder was made from, with the dtype that it has."""
    origin = decoder.config.origin
    if _without_dropout(config_of(origin)) != _without_dropout(decoder.config):
        raise BadInput("the decoder's config was changed in a way that its family has no words for", code="unsupported")
    values = {key: value for key, value in origin.items() if key not in ("dtype", "torch_dtype")}
    class_name = find(origin["model_type"]).architecture.class_name
    said = {"architectures": [class_name]} if class_name else {}
    return {**said, **values, **said, "dtype": _word(decoder.embedding.weight)}


def _without_dropout(config: Any) -> Any:
    return replace(config, **dict.fromkeys(DROPOUTS, 0.0))


def _word(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _linked(source: str, out: str) -> None:
    """A file under a second name, or a copy where the disk knows no such thing."""
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
            values = tensor.cpu()  # kept here as long as its bytes are looked at
            file.write(raw(values))
