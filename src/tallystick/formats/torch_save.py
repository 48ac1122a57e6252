"""Read files of ``torch.save``, without running them: zip archives, and older pickles.

An archive holds one pickle, which names tensors and their storages, and a member for each storage.
Before torch 1.6, a file was several pickles in a row; the fourth holds the tensors. Then follow the
storages. Only the pickles are read, by `tallystick.formats.pickled.pickles`. Storages are only
checked for their position and size.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from io import BufferedReader, BytesIO
from typing import Any, NamedTuple

from tallystick.core.dtypes import size_in_bytes
from tallystick.errors import BadInput, quoted
from tallystick.files import zips
from tallystick.files.local import OpenFile
from tallystick.files.remote import Location, Remote
from tallystick.formats.pickled.deepspeed import partitioned
from tallystick.formats.pickled.pickle_values import Name
from tallystick.formats.pickled.pickles import LARGEST, followed
from tallystick.formats.pickled.state_dicts import FoundTensors, tensors_in
from tallystick.formats.pickled.strangers import Stranger, stranger_notes
from tallystick.formats.pickled.torch_calls import KNOWN
from tallystick.formats.pickled.torch_names import DTYPES, SHARED_BYTES
from tallystick.formats.pickled.torch_tensors import SavedTensor, Storage, Wrapped, is_size, sizes_of, storage_of
from tallystick.formats.pickled.whole_modules import opened
from tallystick.formats.storage_overlap import View, joined, shared
from tallystick.formats.weights_file import NOWHERE, Header, SharedStorage, StoredTensor, Weight, WeightsFile

KIND = "torch"

_PICKLE = b"\x80"  # beginning of the old form
_MAGIC = 0x1950A86A20F9469CFC6C  # its first pickle
_PROTOCOL = 1001  # its second pickle
_COUNT = 8  # bytes before each storage of the old form, which state its number of elements


class _Whole(NamedTuple):
    """Unpickled values of a file, and byte offsets of its storages; None for a compressed one."""

    values: Any
    places: Mapping[str, int | None]
    strangers: Mapping[str, None]  # names of classes that weights do not need


def sniff(file: OpenFile) -> bool:
    """Return whether a file begins like one of ``torch.save``."""
    return file.start.startswith((zips.MAGIC, _PICKLE))


def read(file: OpenFile) -> WeightsFile:
    """Read the tensors of a file of ``torch.save`` from its pickle.

    Raises:
        BadInput: if it is broken, or its pickle names a function that could run programs or read
            files.
    """
    if not sniff(file):
        raise BadInput(
            f"{file.path} is not a known weights file: it begins with {quoted(bytes(file.start[:8]))}",
            code="malformed",
        )
    try:
        whole = _whole(file)
        plain = opened(whole.values)
        if isinstance(plain.values, Stranger):
            what = f"one {plain.values.name} object, which was not imported or run, and no tensors"
            raise BadInput(f"it holds {what}: name the file with the model's state_dict()", code="unsupported")
        found = tensors_in(plain.values, lambda value: isinstance(value, SavedTensor | Wrapped))
        contents = _contents(file.path, found, whole.places)
        buffers = frozenset(name for name, one in found.tensors.items() if id(one) in plain.buffers)
        return contents._replace(
            buffers=contents.buffers | buffers, notes=(*contents.notes, *stranger_notes(whole.strangers))
        )
    except BadInput as error:
        raise BadInput(f"{file.path} cannot be read: {error}", code=error.code) from None


def _whole(file: OpenFile) -> _Whole:
    """Read a file of either form."""
    elsewhere = isinstance(file.path, Remote)
    if file.start.startswith(zips.MAGIC):
        return _from_archive(file.stream, file.size, places=not elsewhere)
    if elsewhere:
        raise BadInput(
            "it has the format of torch before 1.6, which is read only from local files: download it",
            code="unsupported",
        )
    return _from_pickles(file.stream, file.size)


def _from_archive(file: BufferedReader, size: int, *, places: bool) -> _Whole:
    """Read a zip archive; with `places`, find each storage's offset, at the cost of one read."""
    members = zips.members(file, size)
    pickled = [name for name in members if name.endswith("data.pkl") and name.count("/") == 1]
    if len(pickled) != 1:
        raise BadInput("it is a zip archive, but not from torch.save: it has no data.pkl", code="unsupported")
    folder = pickled[0].removesuffix("data.pkl")
    if f"{folder}constants.pkl" in members:
        raise BadInput("it is a TorchScript program, which is not supported: save its state_dict()", code="unsupported")
    content = zips.content_of(file, members[pickled[0]], LARGEST)
    storages: dict[str, Storage] = {}
    strangers: dict[str, None] = {}
    values = followed(BytesIO(content), KNOWN, _remembering(storages, _ZIPPED), strangers)
    found: dict[str, int | None] = {}
    for key, storage in storages.items():
        member = members.get(f"{folder}data/{key}")
        if member is None or member.size < storage.bytes:
            has = "does not hold" if member is None else f"holds {member.size:,} bytes of"
            raise BadInput(
                f"it {has} the storage {quoted(key)}, for which its pickle needs {storage.bytes:,} bytes",
                code="truncated",
            )
        found[key] = zips.place_of(file, member) if places and member.method == zips.STORED else None
    return _Whole(values, found, strangers)


def _from_pickles(file: BufferedReader, size: int) -> _Whole:
    """Read the form before torch 1.6, which `_use_new_zipfile_serialization=False` still writes."""
    stream = BytesIO(file.read(min(size, LARGEST)))  # BytesIO allocates what is read
    magic = followed(stream, {}, _refused)
    if magic != _MAGIC or followed(stream, {}, _refused) != _PROTOCOL:
        raise BadInput("it is a pickle, but not from torch.save", code="unsupported")
    followed(stream, {}, _refused)  # integer sizes of the machine that wrote it
    storages: dict[str, Storage] = {}
    strangers: dict[str, None] = {}
    values = followed(stream, KNOWN, _remembering(storages, _IN_ROW), strangers)
    keys = followed(stream, {}, _refused)
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys) or set(keys) != storages.keys():
        raise BadInput("its storages do not match its tensors", code="malformed")
    places: dict[str, int | None] = {}
    position = stream.tell()
    for key in keys:
        file.seek(position)
        count = int.from_bytes(file.read(_COUNT), "little")
        places[key] = position + _COUNT
        position += _COUNT + storages[key].bytes
        if count * DTYPES[storages[key].dtype] != storages[key].bytes * 8 or position > size:
            raise BadInput(
                f"the storage {quoted(key)} is not at its offset: the file is truncated or broken", code="truncated"
            )
    return _Whole(values, places, strangers)


def _refused(_: Any) -> Any:
    raise BadInput("its pickle contains a storage in an unexpected place", code="malformed")


def _remembering(storages: dict[str, Storage], fields: int) -> Callable[[Any], Any]:
    """Return a function that makes storages of persistent ids, and collects them in `storages`."""

    def of(given: Any) -> Any:
        if isinstance(given, tuple) and given[:1] == ("module",) and len(given) == 4 and isinstance(given[1], Name):
            return given[1]  # a module's class, which the old form saves with its source code
        if not isinstance(given, tuple) or len(given) != fields or given[0] != "storage":
            raise BadInput("its pickle has an invalid storage id", code="malformed")
        storage = storage_of(given[1], given[2], given[4])
        if storages.setdefault(storage.key, storage).bytes:
            storage = storages[storage.key]  # as torch, which reads a storage once and trusts its first description
        else:
            storages[storage.key] = storage
        return storage if fields == _ZIPPED or given[5] is None else _part(storage, given[5])

    return of


_ZIPPED, _IN_ROW = 5, 6  # fields of a storage's persistent id in each form


def _part(storage: Storage, part: Any) -> Storage:
    """Return a part of a storage: before 0.4, torch saved its key, offset and size in elements."""
    if not isinstance(part, tuple) or len(part) != 3 or not is_size(part[1]) or not is_size(part[2]):
        raise BadInput("its pickle has an invalid storage view", code="malformed")
    start, size = (elements * DTYPES[storage.dtype] // 8 for elements in part[1:])
    if start + size > storage.bytes:
        raise BadInput(f"its pickle has a view that extends past the storage {quoted(storage.key)}", code="malformed")
    return storage._replace(start=start, bytes=size)


class _TakenApart(NamedTuple):
    """Plain tensors of a file, and the weights that they store in packed or wrapped form."""

    tensors: dict[str, SavedTensor]
    metadata: dict[str, str]  # torchao's description of each packed tensor
    weights: dict[str, Weight]
    auxiliary: frozenset[str]
    notes: tuple[str, ...]


def _taken_apart(found: Mapping[str, SavedTensor | Wrapped]) -> _TakenApart:
    """Return plain tensors; wrapped ones are split into their parts.

    Parts have the names that torchao gives them in safetensors, or names after a dot.
    """
    tensors: dict[str, SavedTensor] = {}
    metadata: dict[str, str] = {}
    weights: dict[str, Weight] = {}
    kinds: dict[str, list[str]] = {}
    names: list[str] = []

    def add(name: str, tensor: SavedTensor) -> None:
        if name in tensors:
            raise BadInput(f"it holds two tensors named {quoted(name)}", code="overlap")
        tensors[name] = tensor

    for name, one in found.items():
        if isinstance(one, SavedTensor):
            add(name, _of_whole_bytes(one))
            if one.dtype in SHARED_BYTES and one.elements:
                weights[name] = Weight(one.shape, one.dtype, "", *2 * (tensors[name].elements,))
            if one.dtype == _IN_PAIRS:
                kinds.setdefault(_IN_PAIRS, []).append(name)
            continue
        module, dot, last = name.rpartition(".")
        if "qdata" in one.parts:
            metadata[name] = json.dumps({"_type": one.kind, "_data": {"shape": one.shape}})
            for part, tensor in one.parts.items():
                add(f"{module}{dot}_{last}_{part}", tensor)
            continue
        values = next((part for part in ("values", "_local_tensor") if part in one.parts), None)
        if values is None:
            raise BadInput(
                f"it holds {quoted(name)} of class {one.kind}, whose values are not at their offset",
                code="malformed",
            )
        add(name, held := one.parts[values])
        size = held.elements
        weights[name] = Weight(one.shape, held.dtype, "", size, size_in_bytes(size, held.dtype))
        kinds.setdefault(one.kind, []).append(name)
        for part, tensor in one.parts.items():
            if part != values:
                add(f"{name}.{part}", tensor)
                names.append(f"{name}.{part}")
    return _TakenApart(tensors, metadata, weights, frozenset(names), tuple(_kind_notes(kinds, weights)))


_IN_PAIRS = "float4_e2m1fn_x2"


def _of_whole_bytes(tensor: SavedTensor) -> SavedTensor:
    """Return a tensor of sub-byte elements as its bytes; any other tensor unchanged."""
    if tensor.dtype not in SHARED_BYTES or not tensor.elements:
        return tensor
    *rows, last = tensor.shape or (1,)
    shape = (*rows, -(-last * SHARED_BYTES[tensor.dtype] // 8))
    strides = tuple(math.prod(shape[place + 1 :]) for place in range(len(shape)))
    return tensor._replace(dtype="uint8", shape=shape, strides=strides)


def _kind_notes(kinds: Mapping[str, list[str]], weights: Mapping[str, Weight]) -> Iterator[str]:
    """Yield notes on how tensors of special kinds were counted."""
    for kind, names in kinds.items():
        count = f"{len(names):,} tensor{'s' * (len(names) > 1)}"
        if kind == _IN_PAIRS:
            yield f"{count} of {kind}: each complex element counts as one, as in torch"
            continue
        size, stored = (
            sum(sizes) for sizes in zip(*((weights[n].size, weights[n].stored) for n in names), strict=True)
        )
        if kind == "nested":
            yield f"{count} nested: counted by the {size:,} elements of all parts"
        elif kind == "DTensor":
            yield f"{count} of DTensor: counted by their global shapes, {size:,} elements; {stored:,} of this rank are stored"
        else:
            yield f"{count} {kind}: counted by their dense shapes, {size:,} elements; {stored:,} values are stored"


def _hqq_metadata(values: Mapping[str, Any]) -> dict[str, str]:
    """Return shape and bits that hqq stores with packed values or in their `meta`.

    The result maps the name of the packed values to JSON.
    """
    found: dict[str, dict[str, Any]] = {}
    for name, value in values.items():
        layer, _, word = name.rpartition(".")
        said = found.setdefault(f"{layer.removesuffix('.meta')}.W_q", {})
        if word == "shape":
            said[word] = sizes_of(value)
        elif word == "nbits" and is_size(value):
            said[word] = value
    return {name: json.dumps(said) for name, said in found.items()}


def _contents(path: Location, found: FoundTensors, places: Mapping[str, int | None]) -> WeightsFile:
    whole = partitioned(found, found.tensors)
    taken = _taken_apart(whole.tensors)
    tensors = taken.tensors
    seen = _views(tensors)
    names = list(seen)
    overlaps = shared([view for view, _ in seen.values()])
    groups: dict[int, int] = {}
    for one in overlaps:
        groups[one.owner] = groups.get(one.owner, 0) + 1
    sharing: dict[str, SharedStorage] = {}
    for name, one in zip(names, overlaps, strict=True):
        new = one.new // seen[name][1]
        if groups[one.owner] > 1 or new != tensors[name].elements:
            sharing[name] = SharedStorage(names[one.owner], new, _is_same(tensors[name], tensors[names[one.owner]]))
    header = Header(
        [_stored(name, one, places) for name, one in tensors.items()],
        taken.metadata | _hqq_metadata(found.plain) | whole.aliases,
    )
    return WeightsFile(
        KIND,
        [(path, header)],
        sharing,
        whole.buffers,
        config=_arguments(found),
        notes=(*found.notes(), *taken.notes, *whole.notes()),
        weights=taken.weights | {name: Weight(shape, tensors[name].dtype) for name, shape in whole.shapes.items()},
        auxiliary=taken.auxiliary | _scales(tensors),
    )


_PACKED_BY_TORCH = re.compile(r"((?:\._packed_params)+)\.\w+$|\.weight$")


def _scales(tensors: Mapping[str, SavedTensor]) -> frozenset[str]:
    """Return the names of output scales and zero points of `torch.ao.quantization` modules.

    Only modules with quantised weights count.
    """
    modules = {
        name[: found.start()]
        for name, one in tensors.items()
        if (found := _PACKED_BY_TORCH.search(name)) and (found[1] or one.dtype in ("qint8", "quint8"))
    }
    return frozenset(f"{module}.{word}" for module in modules for word in ("scale", "zero_point")) & tensors.keys()


def _views(tensors: Mapping[str, SavedTensor]) -> dict[str, tuple[View, int]]:
    """Return each tensor's view of its memory, and the units of one element.

    Units are bytes if tensors of several dtypes share the memory; otherwise elements.
    """
    widths: dict[str, set[int]] = {}
    held = {name: (one, one.storage) for name, one in tensors.items() if one.elements}
    for one, storage in held.values():
        if storage is not None:
            widths.setdefault(storage.key, set()).update((DTYPES[one.dtype], 8 if storage.start else DTYPES[one.dtype]))
    seen: dict[str, tuple[View, int]] = {}
    for name, (one, storage) in held.items():
        if storage is None:
            continue
        if len(widths[storage.key]) == 1:
            seen[name] = View(storage.key, one.offset + storage.start * 8 // DTYPES[one.dtype], one.layout), 1
        else:
            width = DTYPES[one.dtype] // 8
            layout = joined((*one.shape, width), (*(stride * width for stride in one.strides), 1))
            seen[name] = View(storage.key, storage.start + one.offset * width, layout), width
    return seen


def _stored(name: str, tensor: SavedTensor, places: Mapping[str, int | None]) -> StoredTensor:
    """Return a tensor with its offsets, known only if it is dense, in order and not compressed."""
    elements = tensor.elements
    place = places.get(tensor.storage.key) if tensor.storage else None
    if tensor.storage is None or place is None or not elements or not _in_order(tensor):
        return StoredTensor(name, tensor.dtype, tensor.shape, NOWHERE, NOWHERE)
    width = DTYPES[tensor.dtype] // 8
    start = place + tensor.storage.start + tensor.offset * width
    return StoredTensor(name, tensor.dtype, tensor.shape, start, start + elements * width)


def _is_same(one: SavedTensor, other: SavedTensor) -> bool:
    """Return whether two tensors are the same under two names; a transposed view is not."""
    return one[:-1] == other[:-1]  # all fields except whether it was a Parameter


def _in_order(tensor: SavedTensor) -> bool:
    step = 1
    for size, stride in zip(reversed(tensor.shape), reversed(tensor.strides), strict=True):
        if size > 1 and stride != step:
            return False
        step *= size
    return True


def _arguments(found: FoundTensors) -> Mapping[str, Any] | None:
    """Return the config in nanoGPT's ``ckpt.pt``: its model arguments, or their dataclass."""
    arguments = found.extras.get("model_args")
    if arguments is None and any(name.endswith(_OF_NANOGPT) for name in found.tensors):
        arguments = found.extras.get("config")  # other models' configs may have the same field names
    fields = arguments.fields if isinstance(arguments, Stranger) else arguments
    if not isinstance(fields, dict):
        return None
    plain = {name: one for name, one in fields.items() if isinstance(name, str) and isinstance(one, int | float)}
    return {"model_type": "nanogpt", **plain} if {"n_layer", "n_embd"} <= plain.keys() else None


_OF_NANOGPT = "transformer.h.0.attn.c_attn.weight"
