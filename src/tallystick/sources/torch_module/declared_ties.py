"""Read the ties that a transformers model declares."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tallystick.core.config import TIE
from tallystick.sources.torch_module.named_parameters import NamedParameters, bare_name, stand_ins, unwrapped

if TYPE_CHECKING:
    from torch import nn


def declared_groups(model: nn.Module, places: NamedParameters) -> list[tuple[str, ...]] | None:
    """Return groups of names that should be one Parameter, the source first.

    Return None if the model declares nothing. A replaced module's parameters stand in for it:
    `lm_head.0.weight` for `lm_head.weight`.

    Args:
        model: wrapped or not.
        places: the model's parameters by name.
    """
    declared = _declared(model)
    if declared is None:
        return None
    groups: dict[str, list[str]] = {}
    for target, source in declared.items():
        for first, second in stand_ins(places, source, target):
            names = groups.setdefault(first, [first])
            if second not in names:
                names.append(second)
    return [tuple(names) for names in groups.values()]


def _declared(model: nn.Module) -> dict[str, str] | None:
    """Return the declared ties as target -> source, from the outermost modules that declare any.

    Return None if no module does.
    """
    declared: dict[str, str] = {}
    spoken = False
    for prefix, keys in _speakers(model, ""):
        spoken = True
        for target, source in keys.items():
            declared[prefix + bare_name(target)] = prefix + bare_name(source)
    return declared if spoken else None


def _speakers(module: nn.Module, prefix: str, above: tuple[int, ...] = ()) -> Iterator[tuple[str, dict[str, str]]]:
    module = unwrapped(module)
    keys = _keys(module)
    if keys is not None:
        yield prefix, keys
        return
    for name, child in module._modules.items():
        if child is not None and id(child) not in above:
            yield from _speakers(child, f"{prefix}{name}.", (*above, id(module)))


def _keys(module: nn.Module) -> dict[str, str] | None:
    kind: Any = type(module)  # ask the class: PEFT's wrappers forward every attribute
    if not hasattr(kind, "get_input_embeddings"):
        return None
    expand = getattr(kind, "get_expanded_tied_weights_keys", None)
    keys: dict[str, str] | None = None
    if callable(expand):  # transformers 5 reads the config again, also in nested models
        try:
            keys = dict(expand(module, all_submodels=True))
        except (AttributeError, TypeError):  # older code has a list instead of a dictionary
            pass
        except ValueError:  # patterns that no longer match, such as for a replaced head
            keys = dict(vars(module).get("all_tied_weights_keys") or {})
    if keys is None:
        flag = getattr(vars(module).get("config"), TIE, None)
        keys = _from_list(module) if flag else {}
    # A backbone without a head does not declare the tie of a head added around it.
    return keys if keys or output_of(module) is not None else None


def output_of(module: Any) -> Any:
    """Return the output embeddings of a transformers model, its LM head, or None."""
    return module.get_output_embeddings() if hasattr(type(module), "get_output_embeddings") else None


def _from_list(module: Any) -> dict[str, str]:
    """Return transformers 4's ties to the input embeddings: listed tensors and the head."""
    names = {id(tensor): name for name, tensor in reversed(list(module.named_parameters(remove_duplicate=False)))}
    shapes = {name: tuple(tensor.shape) for name, tensor in module.named_parameters(remove_duplicate=False)}
    source = names.get(id(getattr(module.get_input_embeddings(), "weight", None)))
    if source is None:
        return {}
    keys = getattr(module, "_tied_weights_keys", None)
    patterns = keys if isinstance(keys, list | tuple) else []
    found = [name for pattern in patterns for name in shapes if re.search(pattern, name)]
    found += [pattern for pattern in patterns if pattern not in shapes]  # a replaced head
    found += [names.get(id(getattr(output_of(module), "weight", None)), source)]
    return {name: source for name in found if name != source and shapes.get(name, shapes[source]) == shapes[source]}
