"""Results of calls in a file of ``torch.save``, and the table of all allowed names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tallystick.errors import BadInput, quoted
from tallystick.formats.pickled.pickle_values import Make, Name, Ordered, Other, key_of
from tallystick.formats.pickled.torch_names import (
    CONSTANTS,
    DEVICES,
    DTENSORS,
    DTYPES,
    LAYOUTS,
    NESTED,
    OTHER_CLASSES,
    PLAIN_CLASSES,
    STORAGE_CLASSES,
    TORCHAO,
)
from tallystick.formats.pickled.torch_tensors import (
    SavedTensor,
    Wrapped,
    as_many,
    moved,
    new_parameter,
    parameter,
    quantized,
    rebuilt,
    rebuilt_with_dtype,
    rebuilt_with_hooks,
    rebuilt_without_values,
    shape_of,
    size_of,
)

_CLASSES_OF_TENSORS = ("torch.Tensor", "torch.nn.parameter.Parameter", NESTED, *TORCHAO, *DTENSORS)


def _of_type(arguments: tuple[Any, ...]) -> Any:
    """Interpret ``_rebuild_from_type_v2(function, type, arguments, state)``."""
    function, kind, given, state = as_many(arguments, 4)
    if not isinstance(function, Name) or not isinstance(kind, Name) or not isinstance(given, tuple):
        raise BadInput("its pickle calls something other than a function: it is broken", code="malformed")
    if kind.name not in _CLASSES_OF_TENSORS:
        raise BadInput("its pickle gives a tensor a class that is not a tensor class", code="malformed")
    made = function.make(given)
    if not isinstance(made, SavedTensor | Wrapped):
        raise BadInput("its pickle gives something else the class of a tensor", code="malformed")
    for one in state if isinstance(state, tuple) else (state,):
        if one and not isinstance(one, dict):
            raise BadInput("its pickle gives a tensor an invalid state", code="malformed")
        if one and isinstance(made, Wrapped) and made.kind != "nested":
            made.parts.update((name, part) for name, part in one.items() if isinstance(part, SavedTensor))
    return made


def _wrapper(arguments: tuple[Any, ...]) -> Wrapped:
    """Interpret ``_rebuild_wrapper_subclass(class, dtype, size, …)``.

    The tensors are in the state, which is set later.
    """
    kind, _, shape = as_many(arguments, 8)[:3]
    if not isinstance(kind, Name) or kind.name not in (*TORCHAO, *DTENSORS):
        raise BadInput("its pickle creates a tensor of a class that is not a tensor class", code="malformed")
    return Wrapped(kind.name.rpartition(".")[2], shape_of(shape), {})


def _layout(arguments: tuple[Any, ...]) -> Other:
    """Interpret ``_get_layout(name)``."""
    name = arguments[0] if len(arguments) == 1 else None
    if not isinstance(name, str) or name.removeprefix("torch.") not in LAYOUTS:
        raise BadInput(f"its pickle names the layout {quoted(name)}, which torch does not have", code="malformed")
    return Other("torch.layout", name.removeprefix("torch."))


def _sparse(arguments: tuple[Any, ...]) -> Wrapped:
    """Interpret ``_rebuild_sparse_tensor(layout, data)``: values and their indices."""
    layout, data = as_many(arguments, 2)
    kind = layout.state if isinstance(layout, Other) and layout.name == "torch.layout" else None
    if kind == "sparse_coo" and isinstance(data, tuple) and len(data) in (3, 4):
        (indices, values), size = data[:2], shape_of(data[2])
        parts = {"values": values, "indices": indices}
        sound = _are_tensors(parts) and len(indices.shape) == 2 and values.shape[:1] == indices.shape[1:]
        if sound and values.shape[1:] == size[indices.shape[0] :] and indices.shape[0] <= len(size):
            return Wrapped(kind, size, parts)
    elif kind in _COMPRESSED and isinstance(data, tuple) and len(data) == 4:
        starts, indices, values, size = data
        compressed, plain = _COMPRESSED[kind]
        parts = {"values": values, compressed: starts, plain: indices}
        if _are_tensors(parts) and len(shape_of(size)) > 1:
            return Wrapped(kind, shape_of(size), parts)
    raise BadInput("its pickle creates a sparse tensor from invalid parts", code="malformed")


_COMPRESSED = {
    "sparse_csr": ("crow_indices", "col_indices"),
    "sparse_bsr": ("crow_indices", "col_indices"),
    "sparse_csc": ("ccol_indices", "row_indices"),
    "sparse_bsc": ("ccol_indices", "row_indices"),
}


def _are_tensors(parts: dict[str, Any]) -> bool:
    return all(isinstance(part, SavedTensor) for part in parts.values())


def _nested(arguments: tuple[Any, ...]) -> Wrapped:
    """Interpret ``_rebuild_nested_tensor(values, sizes, strides, offsets)``; values are joined."""
    parts = dict(zip(("values", "sizes", "strides", "offsets"), as_many(arguments, 4), strict=True))
    if not _are_tensors(parts):
        raise BadInput("its pickle creates a nested tensor from something other than tensors", code="malformed")
    sizes, strides, offsets = (parts[name].shape for name in ("sizes", "strides", "offsets"))
    if len(sizes) != 2 or sizes != strides or offsets != sizes[:1]:
        raise BadInput("a nested tensor has invalid sizes, strides or offsets", code="malformed")
    return Wrapped("nested", parts["values"].shape, parts)


def _jagged(arguments: tuple[Any, ...]) -> Wrapped:
    """Interpret ``_rebuild_njt({"values": …, "offsets": …, …})``: another nested tensor class."""
    (given,) = as_many(arguments, 1)
    named = given if isinstance(given, dict) else {}
    parts = {name: one for name in ("values", "offsets", "lengths") if (one := named.get(name)) is not None}
    if "values" not in parts or not _are_tensors(parts):
        raise BadInput("its pickle creates a nested tensor from something other than tensors", code="malformed")
    return Wrapped("nested", parts["values"].shape, parts)


def ordered_dict(arguments: tuple[Any, ...]) -> Ordered:
    """Interpret ``OrderedDict()``, ``OrderedDict([(key, value), …])`` and ``OrderedDict({…})``."""
    given = arguments[0] if arguments else []
    if len(arguments) > 1:
        raise BadInput("its pickle creates a dictionary from several arguments", code="malformed")
    if isinstance(given, dict):
        return Ordered(given)
    pairs = given if isinstance(given, list | tuple) else ()
    if not isinstance(given, list | tuple) or not all(
        isinstance(pair, list | tuple) and len(pair) == 2 for pair in pairs
    ):
        raise BadInput("its pickle creates a dictionary from something other than pairs", code="malformed")
    return Ordered((key_of(key), value) for key, value in pairs)


def _counted(arguments: tuple[Any, ...]) -> Ordered:
    """Interpret ``Counter({…})``; the counts of a list are not computed."""
    given = arguments[0] if len(arguments) == 1 else None
    if len(arguments) > 1 or isinstance(given, int | float):
        raise BadInput("its pickle creates a Counter from invalid values", code="malformed")
    return Ordered(given if isinstance(given, dict) else {})


def _with_default(arguments: tuple[Any, ...]) -> Ordered:
    """Interpret ``defaultdict(factory, …)``."""
    return ordered_dict(arguments[1:])


def _queue(arguments: tuple[Any, ...]) -> list[Any]:
    """Interpret ``deque(items, length)``."""
    given = arguments[0] if arguments else ()
    if len(arguments) > 2 or not isinstance(given, list | tuple):
        raise BadInput("its pickle creates a deque from something other than a list", code="malformed")
    return list(given)


def other(name: str) -> Make:
    """Return a function that notes a call without a tensor: its name and first argument."""
    return lambda arguments: Other(name, arguments[0] if arguments else None)


def _beside(name: str, fits: Callable[[tuple[Any, ...]], bool]) -> Make:
    """Return the function of `other` with a check of the arguments."""

    def noted(arguments: tuple[Any, ...]) -> Other:
        if not fits(arguments):
            raise BadInput(f"its pickle calls {name} with invalid arguments", code="malformed")
        return Other(name, arguments[0] if arguments else None)

    return noted


def _is_device(given: tuple[Any, ...]) -> bool:
    """Return whether ``torch.device`` accepts these: a type, with an index in it or apart."""
    word, dot, number = given[0].partition(":") if given and isinstance(given[0], str) else ("", "", "")
    apart = given[1:]
    numbered = not dot or (number.isdecimal() and number.isascii() and not apart)
    return word in DEVICES and numbered and len(apart) < 2 and all(isinstance(one, int) for one in apart)


def _is_of_keys(items: Any) -> bool:
    """Return whether a set can be made of these items."""
    if isinstance(items, list | tuple):
        return not any(isinstance(item, list | dict) for item in items)
    return isinstance(items, dict | str)


# Argument checks of the calls without a tensor that torch allows.
_FITTING: dict[str, Callable[[tuple[Any, ...]], bool]] = {
    "torch.device": _is_device,
    "_codecs.encode": lambda given: 0 < len(given) < 4 and all(isinstance(one, str) for one in given),
    "builtins.set": lambda given: len(given) < 2 and all(map(_is_of_keys, given)),
    "builtins.complex": lambda given: len(given) < 3 and all(isinstance(one, int | float) for one in given),
    "builtins.bytearray": lambda given: len(given) < 4,
}


def names_alone(names: Iterable[str]) -> dict[str, Make]:
    """Return entries for names that may not be called, such as dtypes."""
    return {name: _not_called(name) for name in names}


def _not_called(name: str) -> Make:
    def refuse(_: tuple[Any, ...]) -> Any:
        raise BadInput(f"its pickle calls {quoted(name)}, which is not a function", code="malformed")

    return refuse


_CALLED: dict[str, Callable[[tuple[Any, ...]], Any]] = {
    "torch._utils._rebuild_tensor": rebuilt,
    "torch._utils._rebuild_tensor_v2": rebuilt_with_hooks,
    "torch._utils._rebuild_tensor_v3": rebuilt_with_dtype,
    "torch._utils._rebuild_qtensor": quantized,
    "torch._utils._rebuild_meta_tensor_no_storage": rebuilt_without_values,
    "torch._utils._rebuild_device_tensor_from_cpu_tensor": moved,
    "torch._utils._rebuild_device_tensor_from_numpy": moved,
    "torch._utils._rebuild_xla_tensor": moved,  # before torch 1.9
    "torch._utils._rebuild_sparse_tensor": _sparse,
    "torch._utils._rebuild_nested_tensor": _nested,
    "torch.nested._internal.nested_tensor._rebuild_njt": _jagged,
    "torch._utils._rebuild_parameter": parameter,
    "torch._utils._rebuild_parameter_with_state": parameter,
    "torch._utils._rebuild_wrapper_subclass": _wrapper,
    "torch._tensor._rebuild_from_type_v2": _of_type,
    "torch.nn.parameter.Parameter": new_parameter,
    "torch.serialization._get_layout": _layout,
    "torch.Size": size_of,
    "collections.OrderedDict": ordered_dict,
    "collections.Counter": _counted,
    "collections.defaultdict": _with_default,
    "collections.deque": _queue,
}

# Every name that a weight file may hold, with the function for its call.
KNOWN: dict[str, Make] = {
    **names_alone(f"torch.{word}" for word in DTYPES),
    **names_alone((*STORAGE_CLASSES, *CONSTANTS, *TORCHAO, *DTENSORS, NESTED, *PLAIN_CLASSES)),
    **{name: other(name) for name in OTHER_CLASSES},
    **{name: _beside(name, fits) for name, fits in _FITTING.items()},
    **_CALLED,
}
