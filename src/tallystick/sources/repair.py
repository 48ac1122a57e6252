"""A repaired copy of a checkpoint folder: a tie stored once and declared, or a config that tells the truth.

Nothing is changed in place. The copy is written beside its final name and renamed when it is whole, so that
what stands under that name is never half of something.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tallystick.answers.ties import Problem, Ties
from tallystick.config import TIE
from tallystick.errors import BadInput
from tallystick.sources.checkpoint import find_checkpoint
from tallystick.sources.config import CONFIG
from tallystick.sources.files import read_json
from tallystick.sources.safetensors import StoredTensor, header_bytes
from tallystick.sources.shards import headers_of
from tallystick.sources.values import BLOCK
from tallystick.sources.whole import written_whole


def repair(folder: Path, out: Path, answer: Ties, *, as_: str | None = None) -> list[str]:
    """Write a mended copy of `folder` to `out`, which must not exist; returns what was done, a line each.

    Args:
        folder: a checkpoint's folder, with its config.
        out: the folder to write.
        answer: the ties of that checkpoint.
        as_: ``"tied"`` or ``"untied"``: what the model is to be where the stored values differ.

    Raises:
        BadInput: when there is nothing to mend, when `out` exists, and when values would be lost that nobody gave up.
    """
    if not folder.is_dir():
        raise BadInput(f"{folder} is no folder: name the folder of the checkpoint, with its {CONFIG}")
    if out.absolute().is_relative_to(folder.absolute()):
        raise BadInput(f"{out} is inside {folder} itself: name a folder beside it")
    if not answer.problems:
        raise BadInput(f"{folder} has no tie to mend")
    drop, tied, done = _plan(answer.problems, as_)
    checkpoint = find_checkpoint(folder)
    if checkpoint is None or not (folder / CONFIG).exists():
        raise BadInput(f"{folder} lacks a {CONFIG} or safetensors files to mend")
    with written_whole(out) as partial:
        weights = {path.name for path, _ in headers_of(checkpoint)}  # written tensor by tensor
        shutil.copytree(folder, partial, dirs_exist_ok=True, ignore=lambda _, names: weights & set(names))
        _write_weights(checkpoint, partial, drop)
        _write_config(folder / CONFIG, partial / CONFIG, tied=tied)
    return done


def _plan(problems: Iterable[Problem], as_: str | None) -> tuple[set[str], bool, list[str]]:
    """Names to leave out of the files, what the config is to say, and both in words."""
    drop: set[str] = set()
    tied = True
    done = []
    for problem in problems:
        if problem.code == "config-not-read":
            raise BadInput(problem.message)
        first, *rest = problem.names
        others = " and ".join(rest)
        if problem.code == "config-says-tied-file-differs" and as_ is None:
            raise BadInput(
                f"{first} and {others} hold different values: --as tied drops the trained {others},"
                f" --as untied keeps both and sets tie_word_embeddings to false in {CONFIG}"
            )
        if problem.code == "config-says-untied-head-missing":
            if as_ == "untied":
                raise BadInput(f"no file holds {first}: it cannot be untied from what stands for it; use --as tied")
            done.append(f"{CONFIG} says that {first} is tied")
        elif as_ == "untied":
            tied = False
            done.append(f"{CONFIG} says that {others} and {first} are not tied; the file keeps both")
        else:
            drop.update(rest)
            done.append(f"{others} is left out of the file, and {CONFIG} says that it is tied to {first}")
    return drop, tied, done


def _write_weights(checkpoint: Path, out: Path, drop: set[str]) -> None:
    freed = 0
    for path, header in headers_of(checkpoint):
        kept = [tensor for tensor in header.tensors if tensor.name not in drop]
        freed += sum(tensor.end - tensor.start for tensor in header.tensors if tensor.name in drop)
        if kept:
            metadata = {key: text for key, text in header.metadata.items() if key not in drop}
            _write_file(path, out / path.name, header.data, kept, metadata)
    if checkpoint.name.endswith(".json") and drop:
        index = read_json(checkpoint)
        index["weight_map"] = {name: shard for name, shard in index["weight_map"].items() if name not in drop}
        if isinstance(index.get("metadata"), dict) and isinstance(index["metadata"].get("total_size"), int):
            index["metadata"]["total_size"] -= freed
        (out / checkpoint.name).write_text(json.dumps(index, indent=2) + "\n", encoding="utf-8")


def _write_file(
    source: Path, out: Path, data: int, tensors: Sequence[StoredTensor], metadata: Mapping[str, str]
) -> None:
    """One safetensors file with some of the tensors of another, byte for byte."""
    start = header_bytes(((one.name, one.dtype, one.shape, one.end - one.start) for one in tensors), metadata)
    with source.open("rb") as read, out.open("wb") as write:
        write.write(start)
        for tensor in tensors:
            read.seek(data + tensor.start)
            left = tensor.end - tensor.start
            while left:
                block = read.read(min(BLOCK, left))
                if not block:
                    raise BadInput(f"{source} became shorter while it was copied")
                left -= len(block)
                write.write(block)


def _write_config(source: Path, out: Path, *, tied: bool) -> None:
    values = read_json(source)
    values[TIE] = tied
    out.write_text(json.dumps(values, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
