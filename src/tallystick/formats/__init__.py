"""The formats of weights beside safetensors: which reader a file's name and first bytes ask for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from tallystick.errors import BadInput, quoted
from tallystick.files.local import exists, open_regular, refuse_pointer
from tallystick.files.remote import AnyLocation, Location, Remote
from tallystick.formats.contents import Contents
from tallystick.sources.config import CONFIG

TORCH = (".bin", ".pt", ".pth", ".ckpt")
GGUF = ".gguf"
NPZ = ".npz"
DISTRIBUTED = ".metadata"
ENDINGS = (*TORCH, GGUF, NPZ)
LLAMA2C = ".bin"
OPENVINO = ".xml"  # the end of the graph's name, of which the weights are in a .bin
INDEX_ENDING = ".bin.index.json"
SINGLE = "pytorch_model.bin"
INDEX = "pytorch_model.bin.index.json"

_PART = re.compile(r"-\d{5}(?=-of-\d{5}\.gguf$)")

# What a folder's weights are called, the likeliest first.
_USUAL = (INDEX, SINGLE, "model.pt", "model.pth", "ckpt.pt", DISTRIBUTED)
_BESIDE_WEIGHTS = ("training_args", "optimizer", "scheduler", "rng_state", "scaler")  # what trainers leave beside them


def is_weights(name: str) -> bool:
    """Whether a file of that name holds weights, or is an index of such files."""
    return name == DISTRIBUTED or name.endswith((".safetensors", ".safetensors.index.json", INDEX_ENDING, *ENDINGS))


def is_main(name: str) -> bool:
    """Whether a file in a format other than safetensors may hold the model's weights, not what a trainer left beside."""
    return name.endswith(ENDINGS) and not name.startswith(_BESIDE_WEIGHTS)


def read_weights(path: Location) -> Contents:
    """What one file of weights holds.

    Raises:
        BadInput: for a file that is none of what its name says.
    """
    file, _ = open_regular(path)
    with file:
        start = file.read(32)
    refuse_pointer(path, start)
    if path.name.endswith(GGUF):
        from tallystick.formats.gguf import read_gguf

        return read_gguf(path)
    if path.name == DISTRIBUTED:
        from tallystick.formats.distributed import read_distributed

        return read_distributed(_here(path))
    if path.name.endswith(NPZ):
        from tallystick.formats.npz import read_npz

        return read_npz(_here(path))
    from tallystick.formats import torch_save

    if torch_save.is_torch_file(start):
        return torch_save.read_torch_file(path)
    if isinstance(path, Path) and exists(path.parent / (path.name.removesuffix(".bin") + OPENVINO)):
        raise BadInput(f"{path} holds OpenVINO's weights, which are not read: name the folder with its config.json")
    if path.name.endswith(LLAMA2C):  # which begins with a size, as anything may
        from tallystick.formats.llama2c import read_llama2c

        return read_llama2c(path)
    raise BadInput(f"{path} is no file of weights that is known: it begins with {quoted(bytes(start[:8]))}")


def _here(path: Location) -> Path:
    """A file of a format in which what is to be read lies all over it."""
    if isinstance(path, Remote):
        raise BadInput(f"{path}: files of this format are read only where they are on this machine: download it")
    return path


def find_other(folder: AnyLocation, names: Sequence[str]) -> AnyLocation | None:
    """The checkpoint among the names in a folder, where it is not of safetensors.

    None where there is none, or where several could be it and a config tells of the model.
    """
    for usual in _USUAL:
        if usual in names:
            return folder / usual
    indexes = [name for name in names if name.endswith(INDEX_ENDING)]
    files = [name for name in names if is_main(name) and name.removesuffix(".bin") + OPENVINO not in names]
    if len(indexes) == 1:
        return folder / indexes[0]
    if len(files) > 1 and len({_PART.sub("", name) for name in files}) == 1:  # the parts of one
        return folder / files[0]
    if len(files) > 1 and CONFIG in names:
        return None
    if len(files) > 1:
        raise BadInput(f"{folder} holds {len(files)} files of weights, such as {quoted(files[0])}: name one of them")
    return folder / files[0] if files else None
