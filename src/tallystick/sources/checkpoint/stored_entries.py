"""The stored tensors as entries: stacks rolled up, roles from names, names that share memory."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from operator import itemgetter

from tallystick.core.budget import current
from tallystick.core.dtypes import size_in_bytes
from tallystick.core.entries import Entry
from tallystick.errors import BadInput
from tallystick.files.remote import Location
from tallystick.formats.weights_file import Header, WeightsFile
from tallystick.sources.checkpoint.rollup import BYTES_OF_ENTRY, STEPS_OF_ENTRY, roll_up
from tallystick.sources.quantized.detect import FoundPacked
from tallystick.sources.roles.from_names import is_buffer, is_quantisation, role_of
from tallystick.sources.roles.roles import roles_of


def stored_sizes(contents: WeightsFile) -> tuple[int, int]:
    """Return the elements and bytes in the files; shared memory is counted once."""
    tensors = contents.tensors
    shared = [tensor for tensor in tensors if tensor.name in contents.sharing] if contents.sharing else []
    alone = Counter(map(itemgetter(1, 2), tensors))  # (dtype, shape) pairs: even a large checkpoint has few
    alone.subtract((tensor.dtype, tensor.shape) for tensor in shared)
    sizes = [(math.prod(shape), dtype, times) for (dtype, shape), times in alone.items()]
    sizes += [(contents.sharing[tensor.name].new, tensor.dtype, 1) for tensor in shared]
    return (
        sum(size * times for size, _, times in sizes),
        sum(size_in_bytes(size, dtype) * times for size, dtype, times in sizes),
    )


def stored_entries(path: Location, contents: WeightsFile, packed: FoundPacked) -> list[Entry]:
    """Return the stored tensors as entries, each with the role that its own name says."""
    try:
        return [_known(entry, contents, packed) for entry in _rolled(contents, packed)]
    except BadInput as error:
        raise BadInput(f"{path}: {error}", code=error.code) from None


def among_neighbours(entries: list[Entry], contents: WeightsFile) -> list[Entry]:
    """Return stored tensors with the roles that shapes and neighbours tell if no config does."""
    if contents.own_names:  # such a format's names determine all roles
        return entries
    return [entry._replace(role=matched.role) for entry, matched in zip(entries, roles_of(entries), strict=True)]


def _known(entry: Entry, contents: WeightsFile, packed: FoundPacked) -> Entry:
    """Set an entry's role, buffer flag and packed bytes without a config.

    The format and the packing method classify their own names; other names are matched with
    well-known ones.
    """
    role, name = (contents.role or role_of)(entry.name), next(entry.unrolled()).name
    named = not contents.own_names and is_buffer(entry.name, entry.shape)
    auxiliary = name in packed.auxiliary or (named and is_quantisation(entry.name))
    return entry._replace(
        role=role,
        active=contents.experts_used if role == "experts" else None,
        buffer=named or auxiliary or name in contents.buffers,
        packed=size_in_bytes(entry.size, entry.dtype) if auxiliary else entry.packed,
    )


def _rolled(contents: WeightsFile, packed: FoundPacked) -> Iterator[Entry]:
    """Yield stacks of tensors, and tensors that share memory one by one; roles are not set yet."""

    def tensors(*, shared: bool) -> Iterator[tuple[str, str, tuple[int, ...]]]:
        for _, header in contents.files:
            for name, dtype, shape, _, _ in header.tensors:
                if (name in sharing) is shared:
                    held = packed.weights.get(name)
                    yield (name, held.dtype, held.shape) if held else (name, dtype, shape)

    budget, sharing = current(), contents.sharing
    budget.step(3 * sum(len(header.tensors) for _, header in contents.files))
    sizes = {name: weight.bytes for name, weight in packed.weights.items()}
    yield from roll_up(tensors(shared=False), sizes)
    for name, dtype, shape in tensors(shared=True) if sharing else ():
        budget.step(STEPS_OF_ENTRY)
        budget.keep(BYTES_OF_ENTRY, "its tensors")
        owner, new, _ = sharing[name]
        unique = math.prod(shape) * bool(new) if name in packed.weights else new  # packed tensors are shared entirely
        yield Entry(name, shape, "other", dtype, owner, unique, packed=sizes.get(name))


def alias_entries(entries: list[Entry], files: Iterable[tuple[Location, Header]]) -> list[Entry]:
    """Return entries for the names that were dropped on saving.

    `__metadata__` maps them to stored names.
    """
    metadata = {alias: name for _, header in files for alias, name in header.metadata.items()}
    # Most metadata is {"format": "pt"} and names no tensor: return before unrolling a large
    # checkpoint.
    said = set(metadata.values())
    named = {tensor.name for _, header in files for tensor in header.tensors if tensor.name in said}
    if not named:
        return []
    singles = {single.name: single for entry in entries for single in entry.unrolled()}
    aliases = [
        singles[name]._replace(name=alias, unique=0, role=role_of(alias))
        for alias, name in metadata.items()
        if name in named and alias not in singles
    ]
    matched = roles_of([*entries, *aliases])[len(entries) :]
    return [alias._replace(role=one.role) for alias, one in zip(aliases, matched, strict=True)]
