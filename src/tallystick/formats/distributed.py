"""Read checkpoints of torch.distributed.checkpoint from the ``.metadata`` in their folder.

The file is a pickle of a few dataclasses: names, shapes and dtypes of tensors, their shards, and
the files that hold them. The same interpreter as for ``torch.save`` follows it, without running
anything. Shard files are not opened; only their existence and size are checked. So values are never
compared, and a tensor saved under two names counts twice unless a config in the folder ties them.
Metadata of more than 16 MB is refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

from tallystick.core.dtypes import BITS
from tallystick.errors import BadInput, quoted
from tallystick.files.local import OpenFile, here, open_regular
from tallystick.formats.pickled.pickle_values import Make, Other
from tallystick.formats.pickled.pickles import LARGEST, followed
from tallystick.formats.pickled.state_dicts import tensors_in
from tallystick.formats.pickled.torch_calls import names_alone, ordered_dict, other
from tallystick.formats.pickled.torch_tensors import dtype_of, is_size, sizes_of
from tallystick.formats.weights_file import NOWHERE, Header, StoredTensor, WeightsFile, check_shape

KIND = "distributed"

_OPTIMIZERS = ("optim", "optimizer", "optimizers", "opt")  # first name parts of optimizer state

_METADATA = "torch.distributed.checkpoint.metadata."
_CLASSES = (
    *(
        _METADATA + name
        for name in (
            "Metadata", "TensorStorageMetadata", "BytesStorageMetadata", "ChunkStorageMetadata", "TensorProperties",
            "MetadataIndex", "StorageMeta", "_MEM_FORMAT_ENCODING",
        )
    ),
    "torch.distributed.checkpoint.filesystem._StorageInfo", "torch.distributed.checkpoint.filesystem._StoragePrefix",
    "torch.distributed._shard.sharded_tensor.metadata.TensorProperties",  # their module in torch 2.0
    "torch.distributed._shard.sharded_tensor.metadata.MEM_FORMAT_ENCODING",
    "torch.Size", "torch.serialization._get_layout", "pathlib.Path", "pathlib.PosixPath", "pathlib.WindowsPath",
    "pathlib._local.PosixPath", "pathlib._local.WindowsPath",
)  # fmt: skip
_KNOWN: dict[str, Make] = {
    **{name: other(name) for name in _CLASSES},
    **names_alone(f"torch.{word}" for word in BITS),
    "collections.OrderedDict": ordered_dict,
}


class _Sharded(NamedTuple):
    """A sharded tensor."""

    dtype: str
    shape: tuple[int, ...]


def sniff(file: OpenFile) -> bool:
    """Return whether a file begins like a pickle."""
    return file.start.startswith(b"\x80")


def read(file: OpenFile) -> WeightsFile:
    """Read the tensors of a checkpoint from its ``.metadata``.

    Raises:
        BadInput: if it is broken, its pickle names anything but the known dataclasses, or shards
            are missing.
    """
    path = here(file.path)
    content = file.stream.read(min(file.size, LARGEST + 1))
    try:
        if len(content) > LARGEST:
            raise BadInput(f"it has {file.size:,} bytes, more than the {LARGEST:,} that are read", code="too-large")
        whole = _fields(followed(BytesIO(content), _KNOWN, _no_memory), "Metadata")
        _check_files(path.parent, whole.get("storage_data"))
        nested = _by_path(whole)
        optimizers = {key: one for key, one in nested.items() if key in _OPTIMIZERS}
        found = tensors_in({key: one for key, one in nested.items() if key not in optimizers}, _is_tensor)
    except BadInput as error:
        raise BadInput(f"{path} cannot be read: {error}", code=error.code) from None
    found = found._replace(extras={**found.extras, **optimizers})
    tensors = [StoredTensor(name, one.dtype, one.shape, NOWHERE, NOWHERE) for name, one in found.tensors.items()]
    return WeightsFile(KIND, [(path, Header(tensors, {}))], notes=found.notes())


def _is_tensor(value: Any) -> bool:
    return isinstance(value, _Sharded)


def _no_memory(_: Any) -> Any:
    raise BadInput("its pickle contains tensor storage, which metadata never has", code="malformed")


def _fields(value: Any, name: str) -> dict[Any, Any]:
    """Return the fields of a dataclass; raise `BadInput` if its name is not `name`."""
    if not isinstance(value, Other) or value.name.rpartition(".")[2] != name or not isinstance(value.state, dict):
        raise BadInput(f"it lacks a {name} where one is expected", code="malformed")
    return value.state


def _by_path(whole: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the saved tensors as nested dictionaries, unflattened by the recorded key paths."""
    values, paths = whole.get("state_dict_metadata"), whole.get("planner_data")
    if not isinstance(values, dict):
        raise BadInput("it lists no tensors", code="malformed")
    nested: dict[str, Any] = {}
    for name, item in values.items():
        if not isinstance(name, str) or not isinstance(item, Other) or not item.name.endswith(".TensorStorageMetadata"):
            continue  # bytes of other values, such as numbers and strings
        path = paths.get(name) if isinstance(paths, dict) else None
        parted = isinstance(path, tuple) and path and all(isinstance(part, str) or is_size(part) for part in path)
        *above, last = map(str, path) if parted and path else (name,)
        if above[:1] == [] and last.partition(".")[0] in _OPTIMIZERS:
            above = [last.partition(".")[0]]
        holder = nested
        for part in above:
            holder = holder.setdefault(part, {})
            if not isinstance(holder, dict):
                raise BadInput(f"it holds the tensor {quoted(name)} nested in another", code="malformed")
        if holder.setdefault(last, tensor := _tensor(name, item)) is not tensor:
            raise BadInput(f"it holds two tensors named {quoted(last)}", code="overlap")
    return nested


def _tensor(name: str, item: Other) -> _Sharded:
    """Return a tensor, after checking that its shards cover it exactly."""
    fields = _fields(item, "TensorStorageMetadata")
    properties, shards = fields.get("properties"), fields.get("chunks")
    shape = sizes_of(fields.get("size"))
    try:
        check_shape(shape)
    except BadInput as error:
        raise BadInput(f"the tensor {quoted(name)} has {error}", code=error.code) from None
    state = properties.state if isinstance(properties, Other) else None
    dtype = state.get("dtype") if isinstance(state, dict) else state[0] if isinstance(state, tuple) and state else None
    held = sum(math.prod(sizes) for sizes in dict(_shards(name, shape, shards)).values())
    if held != math.prod(shape):
        raise BadInput(
            f"the shards of {quoted(name)} have {held:,} elements, and it has {math.prod(shape):,}", code="malformed"
        )
    return _Sharded(dtype_of(dtype), shape)


def _shards(name: str, shape: tuple[int, ...], shards: Any) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Yield offsets and sizes of each shard; replicas on several ranks are listed once for each."""
    if not isinstance(shards, list):
        raise BadInput(f"the tensor {quoted(name)} has no list of shards", code="malformed")
    for shard in shards:
        fields = _fields(shard, "ChunkStorageMetadata")
        starts, sizes = sizes_of(fields.get("offsets")), sizes_of(fields.get("sizes"))
        if not len(starts) == len(sizes) == len(shape):
            raise BadInput(f"a shard of {quoted(name)} has a different number of dimensions", code="malformed")
        if any(start + size > whole for start, size, whole in zip(starts, sizes, shape, strict=True)):
            raise BadInput(f"a shard of {quoted(name)} extends past the tensor", code="malformed")
        yield starts, sizes


def _check_files(folder: Path, places: Any) -> None:
    """Raise `BadInput` unless every shard is inside a file of the folder."""
    if not isinstance(places, dict):
        return  # another storage than files in this folder
    sizes: dict[str, int] = {}
    for place in places.values():
        fields = _fields(place, "_StorageInfo")
        name, start, length = (fields.get(key) for key in ("relative_path", "offset", "length"))
        if not isinstance(name, str) or not is_size(start) or not is_size(length):
            raise BadInput("it does not name a shard's file", code="malformed")
        if name not in sizes:
            sizes[name] = _size_of(folder, name)
        if start + length > sizes[name]:
            raise BadInput(
                f"a shard ends at byte {start + length:,} of {quoted(name)}, which has {sizes[name]:,}",
                code="truncated",
            )


def _size_of(folder: Path, name: str) -> int:
    if name in ("", ".", "..") or Path(name).name != name or "\\" in name:
        raise BadInput(f"it names the file {quoted(name)}, which is not a name in its own folder", code="unsafe")
    if not (folder / name).exists():
        raise BadInput(f"the shard file {quoted(name)} is missing from its folder", code="incomplete")
    file, size = open_regular(folder / name)
    file.close()
    return size
