"""Turn a checkpoint into a ledger from its headers and the config inside or next to it."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from tallystick.core.budget import current, one_source
from tallystick.core.config import CONFIG, TIE
from tallystick.core.description import ModelDescription
from tallystick.core.dtypes import size_in_bytes
from tallystick.core.entries import Entry
from tallystick.core.evidence import Evidence
from tallystick.core.ledger import Ledger
from tallystick.errors import BadInput, quoted, shown, visible
from tallystick.files.remote import Location, NotThere, Remote
from tallystick.files.texts import read_json
from tallystick.formats.safetensors import parse_header
from tallystick.formats.shards import Named, read_checkpoint
from tallystick.formats.weights_file import Header, WeightsFile
from tallystick.sources.checkpoint.match_config import ConfigMatch, match_config
from tallystick.sources.checkpoint.peft import adapter_config, adapter_notes
from tallystick.sources.checkpoint.rollup import BYTES_OF_ENTRY, STEPS_OF_ENTRY, roll_up
from tallystick.sources.checkpoint.values import HandedValues, StoredValues, ValuesElsewhere
from tallystick.sources.configs.config import layouts
from tallystick.sources.configs.native import refuse_odd_flag
from tallystick.sources.configs.other_configs import is_params
from tallystick.sources.configs.resolve import TEXT_PARTS, model_type_of, resolve
from tallystick.sources.gc_paused import gc_paused
from tallystick.sources.notes import NO_HEAD, claim_notes, dtype_notes, notes_by_name, packed_notes
from tallystick.sources.quantized.detect import FoundPacked, find_packed, quantisation_in
from tallystick.sources.roles.embedding_and_head import expected_pairs, tied_pairs
from tallystick.sources.roles.from_names import is_buffer, is_quantisation, role_of
from tallystick.sources.roles.roles import roles_of
from tallystick.sources.text_tensors import left_out, names_described
from tallystick.sources.transformers_meta.loader_names import match_transformers

_SHARD = re.compile(r".*-(\d{5})-of-(\d{5})\.safetensors")


@gc_paused()
def ledger_from_checkpoint(
    path: Location, overrides: Mapping[str, Any], *, source: str, shards: Named | None = None
) -> Ledger:
    """Return the ledger of a weights file or of a sharded checkpoint's index.

    The config decides which tensors are parameters and which are buffers; without one, well-known
    names decide. For a type that is not native, transformers is asked for the ties only when they
    are needed.

    Args:
        path: a file of weights in any supported format, or the index of a sharded checkpoint.
        overrides: keys to set over the config in the file or next to it.
        source: the user's name for the checkpoint, for messages.
        shards: the content of the index, if it was read before.

    Raises:
        BadInput: if the checkpoint cannot be read, or there is no config for the overrides.
    """
    contents = read_checkpoint(path, shards)
    config = path.parent / CONFIG
    adapter = adapter_config(path)
    if contents.config is not None:
        context = _described(contents.config, overrides, str(path))
    elif contents.own_names or adapter is not None:
        if overrides:
            raise BadInput(f"{path} has no config to set {', '.join(overrides)} in", code="unknown-key")
        context = _Context()
    else:
        context = _context_of(config, overrides)
    checkpoint = _checkpoint_of(path, contents, context, source)
    if adapter is not None:
        context = context._replace(notes=adapter_notes(path.parent, adapter, checkpoint.entries), adapter=True)
        checkpoint = checkpoint._replace(context=context)
    if context.ledgers:
        ledger = checkpoint.ledger(match_config(checkpoint.entries, context.ledgers, headless=context.headless))
    else:
        ledger = checkpoint.ledger(None, ask=checkpoint.asked if context.foreign else None)
    if path.name.endswith(".json") and not isinstance(path, Remote):  # a remote index is fetched once
        ledger = ledger.with_notes(*claim_notes(path, contents.stated, ledger))
    return ledger


@gc_paused()
def ledger_of_part(
    path: Location,
    layouts: Sequence[Ledger],
    config: Mapping[str, Any],
    *,
    source: str,
    shards: Named | None = None,
) -> Ledger:
    """Return the ledger of the stored tensors of a model's language part.

    Args:
        path: a file of weights, or the index of a sharded checkpoint.
        layouts: the part's ledger, one for each layout of tensor names; empty if only transformers
            knows it.
        config: the config of the whole model.
        source: the user's name for the checkpoint, for messages.
        shards: the content of the index, if it was read before.

    Raises:
        BadInput: if the checkpoint cannot be read, or its language part cannot be separated from
            the rest.
    """
    context = _Context(values=config)
    whole = _checkpoint_of(path, read_checkpoint(path, shards), context, source)
    names = names_described(whole.entries, layouts)
    matched = None
    if not names:
        assert whole.values is not None  # noqa: S101  # the files are available
        try:
            with current().paused():
                matched = match_transformers(whole.entries, config, whole.values, source=CONFIG, language=True)
        except BadInput as error:
            raise BadInput(
                f"{source}: cannot tell the language part from the names alone; {error}", code=error.code
            ) from None
        names = frozenset(stored.name for stored, _ in matched.found.pairs)
    context = context._replace(notes=left_out(whole.entries, names))
    part = _checkpoint_of(path, _only(whole, names), context, source)
    return part.ledger(matched or match_config(part.entries, layouts))


def _only(whole: _Checkpoint, names: frozenset[str]) -> WeightsFile:
    """Return the named tensors of a checkpoint, with the scales of their packed weights."""
    modules = {name.rpartition(".")[0] for name in names & whole.packed.weights.keys()}
    # Scales are next to the weight (`proj.scales`) or below it (`proj.weight.absmax`).
    scales = {name for name in whole.packed.auxiliary if modules & {name.rsplit(".", 1)[0], name.rsplit(".", 2)[0]}}
    files = [
        (file, header._replace(tensors=[tensor for tensor in header.tensors if tensor.name in names | scales]))
        for file, header in whole.contents.files
    ]
    sharing = {name: shared for name, shared in whole.contents.sharing.items() if {name, shared.owner} <= names}
    return whole.contents._replace(files=files, sharing=sharing)


def _checkpoint_of(path: Location, contents: WeightsFile, context: _Context, source: str) -> _Checkpoint:
    """Return a checkpoint's entries with its packed weights found and its values accessible."""
    values = _values_of(path)(contents.files)
    try:
        packed = _packed(contents, context.values, values.peek)
    except BadInput as error:
        raise BadInput(f"{path}: {error}", code=error.code) from None
    values.packed = packed.weights
    return _Checkpoint(path, source, contents, packed, _entries(path, contents, packed), context, values)


def _values_of(path: Location) -> type[StoredValues | ValuesElsewhere]:
    if not isinstance(path, Remote):
        return StoredValues
    return HandedValues if getattr(path.store, "handed_in", False) else ValuesElsewhere


@gc_paused()
def ledger_from_header(text: str, data_bytes: int, *, source: str) -> Ledger:
    """Return the ledger of a ``.safetensors`` file of which only the header is available.

    No value can be read and there is no config: roles follow from names.

    Args:
        text: the header's JSON text.
        data_bytes: size of the data section after the header, in bytes.
        source: the file's name or address.

    Raises:
        BadInput: if the header is malformed.
    """
    path = Path(source)
    with one_source():
        contents = WeightsFile("safetensors", [(path, parse_header(text, data_bytes, where=source))])
        packed = _packed(contents, {}, lambda name: None)
        return _Checkpoint(path, source, contents, packed, _entries(path, contents, packed), _Context(), None).ledger(
            None
        )


class _Checkpoint(NamedTuple):
    """The content of a checkpoint before a config assigns roles and ties."""

    path: Location
    source: str
    contents: WeightsFile
    packed: FoundPacked
    entries: list[Entry]
    context: _Context
    values: StoredValues | ValuesElsewhere | None  # None if only the header is available

    def ledger(
        self, matched: ConfigMatch | None, doubts: Sequence[str] = (), ask: Callable[[], Ledger] | None = None
    ) -> Ledger:
        """Return the ledger of the stored tensors, with the roles and ties that a config states."""
        entries = list(matched.entries if matched else self.entries)
        entries += _aliases(entries, self.contents.files)
        notes = [
            *self.contents.notes,
            *self.context.notes,
            *(matched.notes if matched else notes_by_name(entries, whole=not self.context.adapter)),
            *dtype_notes(entries, self.context.values),
        ]
        if shard := _SHARD.fullmatch(self.path.name):
            alone = (
                f"only shard {int(shard[1])} of {int(shard[2])} was counted: name its folder or index for the"
                " whole model"
            )
            notes.append(alone)
            doubts = (*doubts, alone)
        meant = matched.meant if matched else _meant_by_flag(self.context.foreign, entries)
        if meant is None and self.contents.own_names:
            meant = []  # such a format stores an untied head and omits a tied one
        if meant is None:
            doubts = (*doubts, *(note for note in notes if note == NO_HEAD))
        if self.values is not None:
            self.values.pairs = expected_pairs(entries) if meant is None else ()
        notes += packed_notes(entries, self.packed.weights, quantisation_in(self.context.values).get("quant_method"))
        return Ledger(
            tuple(entries),
            source=self.source,
            kind=self.contents.kind,
            notes=tuple(map(visible, notes)),
            model=matched.described.model if matched else ModelDescription(self.contents.architecture),
            evidence=Evidence(
                described=matched.described if matched else None,
                mismatches=matched.mismatches if matched else {},
                declared=meant,
                unread=self.context.unread,
                doubts=doubts,
                relations={**self._overlaps(), **(matched.relations if matched else {})},
                stored=_stored(self.contents),
                values=self.values,
                ask=ask,
            ),
        )

    def _overlaps(self) -> dict[str, str]:
        """Return the storages that tensors of a file share only in part; they are aliased."""
        return {one.owner: "aliased" for one in self.contents.sharing.values() if not one.whole}

    def asked(self) -> Ledger:
        """Return the ledger with ties from transformers, or from the flag if transformers fails."""
        assert self.values is not None  # noqa: S101  # a config is read only if the files are available
        try:
            with current().paused():
                matched = match_transformers(self.entries, self.context.foreign, self.values, source=CONFIG)
            return self.ledger(matched)
        except BadInput as error:
            return self.ledger(None, [f"ties were read from the flag {TIE} only: {error}"])


def _packed(contents: WeightsFile, config: Mapping[str, Any], peek: Callable[[str], bytes | None]) -> FoundPacked:
    """Return the packed weights of a checkpoint; none for formats with their own tensor names."""
    if contents.own_names:
        return FoundPacked()
    metadata = {key: value for _, header in contents.files for key, value in header.metadata.items()}
    found = find_packed(contents.tensors, quantisation_in(config), metadata, peek)
    return FoundPacked({**found.weights, **contents.weights}, found.auxiliary | contents.auxiliary)


def _stored(contents: WeightsFile) -> tuple[int, int]:
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


def _entries(path: Location, contents: WeightsFile, packed: FoundPacked) -> list[Entry]:
    """Return the stored tensors as entries, with roles from their names."""
    try:
        entries = [_known(entry, contents, packed) for entry in _rolled(contents, packed)]
    except BadInput as error:
        raise BadInput(f"{path}: {error}", code=error.code) from None
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
            for name, dtype, shape, *_ in header.tensors:
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


class _Context(NamedTuple):
    """The result of reading the config inside or next to a checkpoint."""

    ledgers: tuple[Ledger, ...] = ()  # one for each layout of names; empty if the type is unknown
    headless: bool = False  # saved from a class without an LM head
    notes: tuple[str, ...] = ()
    foreign: Mapping[str, Any] = {}  # the config's values, if its type is not native
    unread: str | None = None  # why it could not be used
    values: Mapping[str, Any] = {}  # all values of the config
    adapter: bool = False  # whether the checkpoint is a PEFT adapter


def _context_of(config: Location, overrides: Mapping[str, Any]) -> _Context:
    """Read the config next to a checkpoint.

    A failure becomes a note, unless overrides need the config.
    """
    try:
        values = read_json(config)
        if not isinstance(values, dict):
            raise BadInput(f"{config} holds {shown(values)}, expected an object with a model_type", code="not-a-config")
    except NotThere:
        if overrides:
            raise BadInput(f"there is no {config} to set {', '.join(overrides)} in", code="unknown-key") from None
        return _Context()
    except BadInput as error:
        return _unread(error, overrides)
    return _described(values, overrides, str(config))


def _described(values: Mapping[str, Any], overrides: Mapping[str, Any], source: str) -> _Context:
    """Return the ledgers that a config's values describe, or a note if its type is not native."""
    context = _Context(values=values)
    try:
        if is_params(values):
            # This raises for Meta's keys, because these checkpoints use other tensor names.
            model_type_of({**values, **overrides}, source)
        asked = resolve(values, overrides, source)
        if asked.family is None or asked.is_part:
            said = asked.classes[0] if asked.family and asked.classes else asked.model_type
            unknown = f"{Path(source).name} has {quoted(said)}, which is not known natively"
            if overrides:
                raise BadInput(f"{unknown}: {', '.join(overrides)} cannot be set", code="unknown-key")
            refuse_odd_flag(values, source)
            return context._replace(notes=(f"{unknown}: roles are guessed from names",), foreign=values)
        return context._replace(ledgers=layouts(asked), headless=asked.headless)
    except BadInput as error:
        return _unread(error, overrides)._replace(values=values)


def _unread(error: BadInput, overrides: Mapping[str, Any]) -> _Context:
    if overrides:
        raise error  # the user asked for that config to be read
    return _Context(notes=(f"the checkpoint's config was not used: {error}",), unread=str(error))


def _meant_by_flag(values: Mapping[str, Any], entries: list[Entry]) -> list[tuple[str, ...]] | None:
    """Return the pair of embedding and head if the config's flag ties them.

    Return [] if the flag is false, and None if the config has no flag.
    """
    parts = [values, *(values[part] for part in TEXT_PARTS if part in values)]
    flags = [part[TIE] for part in parts if isinstance(part, dict) and TIE in part]
    if not flags or not isinstance(flags[0], bool):
        return None
    pairs: list[tuple[str, ...]] = [*tied_pairs(entries)]
    return pairs[:1] if flags[0] else []


def _aliases(entries: list[Entry], files: Iterable[tuple[Location, Header]]) -> list[Entry]:
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
