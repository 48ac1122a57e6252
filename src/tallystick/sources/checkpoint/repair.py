"""Write a repaired copy of a checkpoint: a tie stored once, or a corrected config.

Nothing is changed in place. The copy is written under a hidden name and renamed when it is
complete. Only regular files are copied, and links only as `regular` allows: a published copy must
not hold another folder's files.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, Protocol

from tallystick.core.config import CONFIG, TIE
from tallystick.errors import BadInput
from tallystick.files.atomic import atomic_folder
from tallystick.files.regular import Listing, copy_bytes, list_regular
from tallystick.files.texts import read_json
from tallystick.formats.folder import find_safetensors, names_in
from tallystick.formats.safetensors import header_bytes
from tallystick.formats.shards import headers_of
from tallystick.formats.weights_file import Header, StoredTensor


class Problem(Protocol):
    """A problem with a tie: the fields of `answers.ties.ties.Problem` that a repair reads."""

    @property
    def code(self) -> str:
        """The stable code of the problem."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the tied tensors, the owner of the storage first."""

    @property
    def message(self) -> str:
        """The problem in one line."""


def repair(folder: Path, out: Path, problems: Sequence[Problem], *, as_: str | None = None) -> list[str]:
    """Write a repaired copy of `folder` to `out`; return one line for each change.

    Args:
        folder: a checkpoint's folder, with its config.
        out: the folder to write, which must not exist.
        problems: the problems of the checkpoint's ties, as `tallystick.ties` finds them.
        as_: ``"tied"`` or ``"untied"``: the wanted state if the stored values differ.

    Raises:
        BadInput: if there is nothing to repair, `out` exists, or values would be lost without
            consent.
    """
    if not folder.is_dir():
        raise BadInput(f"{folder} is not a folder: name the checkpoint's folder with its {CONFIG}", code="not-found")
    _refuse_inside(folder, out)
    if not problems:
        raise BadInput(f"{folder} has no tie to repair", code="no-answer")
    drop, tied, done = _plan(problems, as_)
    checkpoint = find_safetensors(folder, names_in(folder))
    if checkpoint is None or not (folder / CONFIG).exists():
        raise BadInput(f"{folder} lacks a {CONFIG} or safetensors files to repair", code="incomplete")
    listing = list_regular(folder)
    with atomic_folder(out) as partial:
        files = headers_of(checkpoint)
        listing.copy(partial, leave={path.name for path, _ in files})  # the weights are written tensor by tensor
        freed = _write_weights(listing, files, partial, drop)
        if checkpoint.name.endswith(".json") and drop:
            _write_index(partial / checkpoint.name, drop, freed)
        _write_config(partial / CONFIG, tied=tied)
        listing.refuse_change()
        listing.copy_permissions(partial)
    return done


def _refuse_inside(folder: Path, out: Path) -> None:
    """Raise `BadInput` if `out` is the folder or inside it, also by links or another spelling."""
    above = out.absolute().parent
    if not os.path.isdir(above):
        raise BadInput(f"{above} is not a folder: create it, or choose a place other than {out}", code="not-found")
    around = Path(os.path.realpath(above))
    same = [out] if os.path.exists(out) else []
    if any(os.path.samefile(one, folder) for one in (*same, around, *around.parents)):
        raise BadInput(f"{out} is inside {folder}: name a folder outside it", code="bad-value")


def _plan(problems: Iterable[Problem], as_: str | None) -> tuple[set[str], bool, list[str]]:
    """Return the names to drop from the files, the config's new tie flag, and both in words."""
    drop: set[str] = set()
    tied = True
    done = []
    for problem in problems:
        if problem.code == "config-not-read":
            raise BadInput(problem.message, code="cannot-tie")
        first, *rest = problem.names
        others = " and ".join(rest)
        if problem.code == "config-says-tied-file-differs" and as_ is None:
            raise BadInput(
                f"{first} and {others} hold different values: --as tied drops the trained {others},"
                f" --as untied keeps both and sets tie_word_embeddings to false in {CONFIG}",
                code="ambiguous",
            )
        if problem.code == "config-says-untied-head-missing":
            if as_ == "untied":
                raise BadInput(
                    f"no file holds {first}, so it cannot be untied: use --as tied",
                    code="cannot-tie",
                )
            done.append(f"{CONFIG} now says that {first} is tied")
        elif as_ == "untied":
            tied = False
            done.append(f"{CONFIG} now says that {others} and {first} are not tied; the file keeps both")
        else:
            drop.update(rest)
            done.append(f"removed {others} from the file; {CONFIG} now says that it is tied to {first}")
    return drop, tied, done


def _write_weights(listing: Listing, files: Iterable[tuple[Path, Header]], out: Path, drop: set[str]) -> int:
    """Write the weights without the dropped tensors; return the bytes saved."""
    freed = 0
    for path, header in files:
        kept = [tensor for tensor in header.tensors if tensor.name not in drop]
        freed += sum(tensor.end - tensor.start for tensor in header.tensors if tensor.name in drop)
        if kept:
            metadata = {key: text for key, text in header.metadata.items() if key not in drop}
            with listing.open(path.name) as source:
                _write_file(source, path, out / path.name, header.data, kept, metadata)
    return freed


def _write_file(
    source: BinaryIO, path: Path, out: Path, data: int, tensors: Sequence[StoredTensor], metadata: Mapping[str, str]
) -> None:
    """Write a safetensors file with some tensors of another file, byte for byte."""
    start = header_bytes(((one.name, one.dtype, one.shape, one.end - one.start) for one in tensors), metadata)
    with out.open("xb") as write:
        write.write(start)
        for tensor in tensors:
            source.seek(data + tensor.start)
            copy_bytes(source, write, tensor.end - tensor.start, what=path)


def _write_index(index: Path, drop: set[str], freed: int) -> None:
    values = read_json(index)
    values["weight_map"] = {name: shard for name, shard in values["weight_map"].items() if name not in drop}
    if isinstance(values.get("metadata"), dict) and isinstance(values["metadata"].get("total_size"), int):
        values["metadata"]["total_size"] -= freed
    index.write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")


def _write_config(config: Path, *, tied: bool) -> None:
    values = read_json(config)
    values[TIE] = tied
    config.write_text(json.dumps(values, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
