"""Which tensors a transformers model says are one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tallystick.core.config import TIE
from tallystick.sources.torch_module.named_parameters import NamedParameters, bare_name, stand_ins, unwrapped

if TYPE_CHECKING:
    from torch import nn


def told_groups(model: nn.Module, places: NamedParameters) -> list[tuple[str, ...]] | None:
    """Groups of names that should be one Parameter, the source first; None where the model does not say.

    What took the place of a module stands in for it: `lm_head.0.weight` for `lm_head.weight`.
    """
    told = _told(model)
    if told is None:
        return None
    groups: dict[str, list[str]] = {}
    for target, source in told.items():
        for first, second in stand_ins(places, source, target):
            names = groups.setdefault(first, [first])
            if second not in names:
                names.append(second)
    return [tuple(names) for names in groups.values()]


def _told(model: nn.Module) -> dict[str, str] | None:
    """Targets and their sources as the outermost modules that know say them; None where no module does."""
    told: dict[str, str] = {}
    spoken = False
    for prefix, keys in _speakers(model, ""):
        spoken = True
        for target, source in keys.items():
            told[prefix + bare_name(target)] = prefix + bare_name(source)
    return told if spoken else None


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
    kind: Any = type(module)  # asked of the class: PEFT's wrappers hand on every attribute of what they wrap
    if not hasattr(kind, "get_input_embeddings"):
        return None
    expand = getattr(kind, "get_expanded_tied_weights_keys", None)
    keys: dict[str, str] | None = None
    if callable(expand):  # transformers 5, which asks the config anew, and those of the models inside
        try:
            keys = dict(expand(module, all_submodels=True))
        except (AttributeError, TypeError):  # older code: a list where transformers 5 has a dictionary
            pass
        except ValueError:  # patterns that no longer find their tensors, a replaced head among them
            keys = dict(vars(module).get("all_tied_weights_keys") or {})
    if keys is None:
        flag = getattr(vars(module).get("config"), TIE, None)
        keys = _from_list(module) if flag else {}
    # A backbone without a head knows nothing of the head that somebody put on it.
    return keys if keys or output_of(module) is not None else None


def output_of(module: Any) -> Any:
    """The module that a transformers model calls its output embeddings: its head."""
    return module.get_output_embeddings() if hasattr(type(module), "get_output_embeddings") else None


def _from_list(module: Any) -> dict[str, str]:
    """What transformers 4 ties: the tensors of a list, and the output embeddings, to the input embeddings."""
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
