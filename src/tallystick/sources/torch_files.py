"""Files of ``torch.save``: today's zip archives and the plain pickles of before torch 1.6. Nothing in them is run.

An archive holds one pickle, which names tensors and their storages, and a member for each storage. The old form is
several pickles one after the other, the fourth of which holds the tensors, and then the storages. Only pickles are
read, by `tallystick.sources.pickles`; the storages are looked for where the file says that they are.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from io import BufferedReader, BytesIO
from typing import Any, NamedTuple

from tallystick.dtypes import BITS
from tallystick.errors import BadInput, quoted
from tallystick.sources import zips
from tallystick.sources.contents import NOWHERE, Contents, Sharing
from tallystick.sources.files import open_regular, refuse_pointer
from tallystick.sources.pickles import LARGEST, followed
from tallystick.sources.remote import Location, Remote
from tallystick.sources.safetensors import Header, StoredTensor
from tallystick.sources.state_dicts import Found, tensors_in
from tallystick.sources.torch_tensors import KNOWN, SavedTensor, Storage, Wrapped, is_size, sizes_of, storage_of
from tallystick.sources.views import View, shared

KIND = "torch"

_PICKLE = b"\x80"  # how the old form begins
_MAGIC = 0x1950A86A20F9469CFC6C  # the first of its pickles
_PROTOCOL = 1001  # the second
_COUNT = 8  # bytes before each storage of the old form, which say its elements


class _Whole(NamedTuple):
    """What a file holds, and where in it each storage's bytes begin; None where they are packed."""

    values: Any
    places: Mapping[str, int | None]


def is_torch_file(start: bytes) -> bool:
    """Whether a file that begins so is one of ``torch.save``."""
    return start.startswith((zips.MAGIC, _PICKLE))


def read_torch_file(path: Location) -> Contents:
    """The tensors of a file of ``torch.save``, by what its pickle says of them.

    Raises:
        BadInput: for what is broken, and for a pickle that names anything but parts of weights.
    """
    file, size = open_regular(path)
    with file:
        start = file.read(32)
        refuse_pointer(path, start)
        try:
            if start.startswith(zips.MAGIC):
                whole = _from_archive(file, size, places=not isinstance(path, Remote))
            elif isinstance(path, Remote):
                raise BadInput(
                    "it is of torch's form of before 1.6, which is read only where it is on this machine: download it"
                )
            else:
                whole = _from_pickles(file, size)
            found = tensors_in(whole.values, lambda value: isinstance(value, SavedTensor | Wrapped))
            return _contents(path, found, whole.places)
        except BadInput as error:
            raise BadInput(f"{path} cannot be read: {error}") from None


def _from_archive(file: BufferedReader, size: int, *, places: bool) -> _Whole:
    """Today's form; `places` says whether to look up where storages lie, which takes a read for each."""
    members = zips.members(file, size)
    pickled = [name for name in members if name.endswith("data.pkl") and name.count("/") == 1]
    if len(pickled) != 1:
        raise BadInput("it is a zip archive, and not one of torch.save: it has no data.pkl")
    folder = pickled[0].removesuffix("data.pkl")
    if f"{folder}constants.pkl" in members:
        raise BadInput("it is a program of TorchScript, of which nothing is read: save its state_dict()")
    content = zips.content_of(file, members[pickled[0]], LARGEST)
    storages: dict[str, Storage] = {}
    values = followed(BytesIO(content), KNOWN, _remembering(storages))
    found: dict[str, int | None] = {}
    for key, storage in storages.items():
        member = members.get(f"{folder}data/{key}")
        if member is None or member.size < storage.bytes:
            has = "does not hold" if member is None else f"holds {member.size:,} bytes of"
            raise BadInput(f"it {has} the storage {quoted(key)}, for which its pickle asks {storage.bytes:,} bytes")
        found[key] = zips.place_of(file, member) if places and member.method == zips.STORED else None
    return _Whole(values, found)


def _from_pickles(file: BufferedReader, size: int) -> _Whole:
    """The form of before torch 1.6, which `_use_new_zipfile_serialization=False` still writes."""
    file.seek(0)
    stream = BytesIO(file.read(min(size, LARGEST)))  # what is asked for is made room for
    magic = followed(stream, {}, _refused)
    if magic != _MAGIC or followed(stream, {}, _refused) != _PROTOCOL:
        raise BadInput("it is a pickle, and not one of torch.save")
    followed(stream, {}, _refused)  # the sizes of integers where it was written
    storages: dict[str, Storage] = {}
    values = followed(stream, KNOWN, _remembering(storages))
    keys = followed(stream, {}, _refused)
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys) or set(keys) != storages.keys():
        raise BadInput("the list of its storages is not that of its tensors")
    places: dict[str, int | None] = {}
    position = stream.tell()
    for key in keys:
        file.seek(position)
        count = int.from_bytes(file.read(_COUNT), "little")
        places[key] = position + _COUNT
        position += _COUNT + storages[key].bytes
        if count * BITS[storages[key].dtype] != storages[key].bytes * 8 or position > size:
            raise BadInput(f"the storage {quoted(key)} is not where it should be: the file is cut off or broken")
    return _Whole(values, places)


def _refused(_: Any) -> Any:
    raise BadInput("its pickle asks for memory where it should not")


def _remembering(storages: dict[str, Storage]) -> Callable[[Any], Storage]:
    """What makes storages of persistent ids, and keeps the memory that each is of."""

    def of(given: Any) -> Storage:
        if not isinstance(given, tuple) or len(given) < 5 or given[0] != "storage":
            raise BadInput("its pickle asks for memory by what is no storage's id")
        storage = storage_of(given[1], given[2], given[4])
        known = storages.setdefault(storage.key, storage)
        if known != storage:
            raise BadInput(f"the storage {quoted(storage.key)} has two sizes or dtypes")
        if len(given) > 5 and given[5] is not None:  # a part of it, as before torch 0.4
            raise BadInput("it was written by a torch before 0.4: load it there, and save it again")
        return storage

    return of


def _taken_apart(found: Mapping[str, SavedTensor | Wrapped]) -> tuple[dict[str, SavedTensor], dict[str, str]]:
    """Plain tensors, those in wrapped ones under the names that torchao gives them in safetensors, and its word on each."""
    tensors: dict[str, SavedTensor] = {}
    metadata: dict[str, str] = {}
    for name, one in found.items():
        if isinstance(one, SavedTensor):
            tensors[name] = one
            continue
        if "qdata" not in one.parts:
            raise BadInput(
                f"it holds {quoted(name)} of the class {one.kind}, whose values are not where they should be"
            )
        module, dot, last = name.rpartition(".")
        metadata[name] = json.dumps({"_type": one.kind, "_data": {"shape": one.shape}})
        tensors |= {f"{module}{dot}_{last}_{part}": tensor for part, tensor in one.parts.items()}
    return tensors, metadata


def _told_by_hqq(told: Mapping[str, Any]) -> dict[str, str]:
    """The shape and the bits that hqq keeps beside packed values, or in their `meta`, as JSON by the name of these."""
    found: dict[str, dict[str, Any]] = {}
    for name, value in told.items():
        layer, _, word = name.rpartition(".")
        said = found.setdefault(f"{layer.removesuffix('.meta')}.W_q", {})
        if word == "shape":
            said[word] = sizes_of(value)
        elif word == "nbits" and is_size(value):
            said[word] = value
    return {name: json.dumps(said) for name, said in found.items()}


def _contents(path: Location, found: Found, places: Mapping[str, int | None]) -> Contents:
    tensors, metadata = _taken_apart(found.tensors)
    metadata |= _told_by_hqq(found.told)
    seen = {
        name: View(one.storage.key, one.offset, one.layout)
        for name, one in tensors.items()
        if one.storage is not None and one.elements
    }
    names = list(seen)
    told = shared(list(seen.values()))
    groups: dict[int, int] = {}
    for one in told:
        groups[one.owner] = groups.get(one.owner, 0) + 1
    sharing = {
        name: Sharing(names[one.owner], one.new, _is_same(tensors[name], tensors[names[one.owner]]))
        for name, one in zip(names, told, strict=True)
        if groups[one.owner] > 1 or one.new != tensors[name].elements
    }
    header = Header([_stored(name, one, places) for name, one in tensors.items()], metadata)
    return Contents(KIND, [(path, header)], sharing, config=_arguments(found.beside), notes=found.notes())


def _stored(name: str, tensor: SavedTensor, places: Mapping[str, int | None]) -> StoredTensor:
    """Where a tensor lies: somewhere for certain only where it is dense, in order, and not packed."""
    elements = tensor.elements
    place = places.get(tensor.storage.key) if tensor.storage else None
    if place is None or not elements or not _in_order(tensor):
        return StoredTensor(name, tensor.dtype, tensor.shape, NOWHERE, NOWHERE)
    start = place + tensor.offset * BITS[tensor.dtype] // 8
    return StoredTensor(name, tensor.dtype, tensor.shape, start, start + elements * BITS[tensor.dtype] // 8)


def _is_same(one: SavedTensor, other: SavedTensor) -> bool:
    """Whether two tensors are one under two names; a transposed view is another."""
    return one[:-1] == other[:-1]  # but for which of them was a Parameter


def _in_order(tensor: SavedTensor) -> bool:
    step = 1
    for size, stride in zip(reversed(tensor.shape), reversed(tensor.strides), strict=True):
        if size > 1 and stride != step:
            return False
        step *= size
    return True


def _arguments(beside: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The config in nanoGPT's ``ckpt.pt``: the arguments that its model was built with."""
    arguments = beside.get("model_args")
    if not isinstance(arguments, dict):
        return None
    plain = {name: one for name, one in arguments.items() if isinstance(name, str) and isinstance(one, int | float)}
    return {"model_type": "nanogpt", **plain} if {"n_layer", "n_embd"} <= plain.keys() else None
