"""A checkpoint becomes a ledger by its headers alone, with the config in it or beside it where there is one."""

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
from tallystick.core.evidence import Evidence
from tallystick.core.ledger import Entry, Ledger
from tallystick.errors import BadInput, quoted, shown, visible
from tallystick.files.remote import Location, NotThere, Remote
from tallystick.files.texts import read_json
from tallystick.formats.safetensors import parse_header
from tallystick.formats.shards import Named, read_checkpoint
from tallystick.formats.weights_file import Header, WeightsFile
from tallystick.sources.checkpoint.match_config import ConfigMatch, match_config
from tallystick.sources.checkpoint.peft import adapter_config, adapter_notes
from tallystick.sources.checkpoint.rollup import BYTES_OF_ENTRY, STEPS_OF_ENTRY, roll_up
from tallystick.sources.checkpoint.values import StoredValues, ValuesElsewhere
from tallystick.sources.configs.config import layouts, refuse_odd_flag
from tallystick.sources.configs.other_configs import is_params
from tallystick.sources.configs.resolve import TEXT_PARTS, model_type_of, resolve
from tallystick.sources.gc_paused import gc_paused
from tallystick.sources.notes import NO_HEAD, claim_notes, dtype_notes, notes_by_name, packed_notes
from tallystick.sources.quantized.detect import FoundPacked, find_packed, quantisation_in
from tallystick.sources.roles.embedding_and_head import expected_pairs, tied_pairs
from tallystick.sources.roles.from_names import is_buffer, is_quantisation, role_of
from tallystick.sources.roles.roles import told_roles
from tallystick.sources.text_tensors import left_out, names_described
from tallystick.sources.transformers_meta.loader_names import told_by_transformers

_SHARD = re.compile(r".*-(\d{5})-of-(\d{5})\.safetensors")


@gc_paused()
def ledger_from_checkpoint(
    path: Location, overrides: Mapping[str, Any], *, source: str, shards: Named | None = None
) -> Ledger:
    """The ledger of a file of weights or of a sharded checkpoint's index, in any format that is read.

    Parameters are told from buffers by the config in the file or beside it, or else by well-known names. What
    transformers ties in a type that is not native is learnt when ties are asked for. `overrides` are set over that
    config; `shards` are those that an index names, where it was read before.
    """
    contents = read_checkpoint(path, shards)
    config = path.parent / CONFIG
    adapter = adapter_config(path)
    if contents.config is not None:
        beside = _described(contents.config, overrides, str(path))
    elif contents.own_names or adapter is not None:
        if overrides:
            raise BadInput(f"{path} has no config to set {', '.join(overrides)} in", code="unknown-key")
        beside = _Beside()
    else:
        beside = _beside(config, overrides)
    checkpoint = _laid_out(path, contents, beside, source)
    if adapter is not None:
        beside = beside._replace(notes=adapter_notes(path.parent, adapter, checkpoint.entries), adapter=True)
        checkpoint = checkpoint._replace(beside=beside)
    if beside.ledgers:
        ledger = checkpoint.ledger(match_config(checkpoint.entries, beside.ledgers, headless=beside.headless))
    else:
        ledger = checkpoint.ledger(None, ask=checkpoint.asked if beside.foreign else None)
    if path.name.endswith(".json") and not isinstance(path, Remote):  # an index elsewhere is fetched once
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
    """The ledger of what is stored of the language part of a model.

    Args:
        path: a file of weights, or the index of a sharded checkpoint.
        layouts: the ledger of the part, once for each way to name its tensors; none where only transformers knows it.
        config: that of the whole.
        source: what the user named, for messages.
        shards: what the index names, where it was read before.

    Raises:
        BadInput: when the checkpoint cannot be read, or its language part cannot be told from the rest.
    """
    beside = _Beside(values=config)
    whole = _laid_out(path, read_checkpoint(path, shards), beside, source)
    names = names_described(whole.entries, layouts)
    told = None
    if not names:
        assert whole.values is not None  # noqa: S101  # the files are at hand
        try:
            with current().paused():
                told = told_by_transformers(whole.entries, config, whole.values, source=CONFIG, language=True)
        except BadInput as error:
            raise BadInput(
                f"{source}: names alone do not tell its language part from the rest; {error}", code=error.code
            ) from None
        names = frozenset(stored.name for stored, _ in told.found.pairs)
    beside = beside._replace(notes=left_out(whole.entries, names))
    part = _laid_out(path, _only(whole, names), beside, source)
    return part.ledger(told or match_config(part.entries, layouts))


def _only(whole: _Checkpoint, names: frozenset[str]) -> WeightsFile:
    """What a checkpoint holds under some names, and beside the packed weights among them."""
    modules = {name.rpartition(".")[0] for name in names & whole.packed.weights.keys()}
    # Some are beside the weight, `proj.scales`; some are below it, `proj.weight.absmax`.
    scales = {name for name in whole.packed.beside if modules & {name.rsplit(".", 1)[0], name.rsplit(".", 2)[0]}}
    files = [
        (file, header._replace(tensors=[tensor for tensor in header.tensors if tensor.name in names | scales]))
        for file, header in whole.contents.files
    ]
    sharing = {name: shared for name, shared in whole.contents.sharing.items() if {name, shared.owner} <= names}
    return whole.contents._replace(files=files, sharing=sharing)


def _laid_out(path: Location, contents: WeightsFile, beside: _Beside, source: str) -> _Checkpoint:
    """What a checkpoint holds, with its packed weights found and its values at hand."""
    values = (ValuesElsewhere if isinstance(path, Remote) else StoredValues)(contents.files)
    try:
        packed = _packed(contents, beside.values, values.peek)
    except BadInput as error:
        raise BadInput(f"{path}: {error}", code=error.code) from None
    values.packed = packed.weights
    return _Checkpoint(path, source, contents, packed, _entries(path, contents, packed), beside, values)


@gc_paused()
def ledger_from_header(text: str, data_bytes: int, *, source: str) -> Ledger:
    """The ledger of a ``.safetensors`` file that is elsewhere: its header's text, and how many bytes follow that.

    No value can be read, and there is no config beside it: roles are told by name.
    """
    path = Path(source)
    with one_source():
        contents = WeightsFile("safetensors", [(path, parse_header(text, data_bytes, where=source))])
        packed = _packed(contents, {}, lambda name: None)
        return _Checkpoint(path, source, contents, packed, _entries(path, contents, packed), _Beside(), None).ledger(
            None
        )


class _Checkpoint(NamedTuple):
    """What was read of a checkpoint, before anybody says what its tensors are."""

    path: Location
    source: str
    contents: WeightsFile
    packed: FoundPacked
    entries: list[Entry]
    beside: _Beside
    values: StoredValues | ValuesElsewhere | None  # None where only the header is at hand

    def ledger(
        self, told: ConfigMatch | None, doubts: Sequence[str] = (), ask: Callable[[], Ledger] | None = None
    ) -> Ledger:
        """The ledger of what is stored, with what a config told of it."""
        entries = list(told.entries if told else self.entries)
        entries += _aliases(entries, self.contents.files)
        notes = [
            *self.contents.notes,
            *self.beside.notes,
            *(told.notes if told else notes_by_name(entries, whole=not self.beside.adapter)),
            *dtype_notes(entries, self.beside.values),
        ]
        if shard := _SHARD.fullmatch(self.path.name):
            alone = f"this is shard {int(shard[1])} of {int(shard[2])} alone: name its folder or index for the whole"
            notes.append(alone)
            doubts = (*doubts, alone)
        meant = told.meant if told else _meant_by_flag(self.beside.foreign, entries)
        if meant is None and self.contents.own_names:
            meant = []  # such a format stores a head that is one of its own, and leaves out one that is tied
        if meant is None:
            doubts = (*doubts, *(note for note in notes if note == NO_HEAD))
        if self.values is not None:
            self.values.pairs = expected_pairs(entries) if meant is None else ()
        notes += packed_notes(entries, self.packed.weights, quantisation_in(self.beside.values).get("quant_method"))
        return Ledger(
            tuple(entries),
            source=self.source,
            kind=self.contents.kind,
            notes=tuple(map(visible, notes)),
            model=told.described.model if told else ModelDescription(self.contents.architecture),
            evidence=Evidence(
                described=told.described if told else None,
                mismatches=told.mismatches if told else {},
                declared=meant,
                unread=self.beside.unread,
                doubts=doubts,
                relations={**self._overlaps(), **(told.relations if told else {})},
                stored=_stored(self.contents),
                values=self.values,
                ask=ask,
            ),
        )

    def _overlaps(self) -> dict[str, str]:
        """The memories of which a file holds several views that are not the same."""
        return {one.owner: "aliased" for one in self.contents.sharing.values() if not one.whole}

    def asked(self) -> Ledger:
        """The ledger with the ties of a type that is not native: transformers', or those of the flag alone."""
        assert self.values is not None  # noqa: S101  # a config is read only where the files are
        try:
            with current().paused():
                told = told_by_transformers(self.entries, self.beside.foreign, self.values, source=CONFIG)
            return self.ledger(told)
        except BadInput as error:
            return self.ledger(None, [f"what is tied was told by the flag {TIE} alone: {error}"])


def _packed(contents: WeightsFile, config: Mapping[str, Any], peek: Callable[[str], bytes | None]) -> FoundPacked:
    """The packed weights of a checkpoint; a format with names of its own packs in ways of its own."""
    if contents.own_names:
        return FoundPacked()
    metadata = {key: value for _, header in contents.files for key, value in header.metadata.items()}
    found = find_packed(contents.tensors, quantisation_in(config), metadata, peek)
    return FoundPacked({**found.weights, **contents.weights}, found.beside | contents.beside)


def _stored(contents: WeightsFile) -> tuple[int, int]:
    """Elements and bytes in the files, what several names share once."""
    tensors = contents.tensors
    shared = [tensor for tensor in tensors if tensor.name in contents.sharing] if contents.sharing else []
    alone = Counter(map(itemgetter(1, 2), tensors))  # dtypes with shapes: a large checkpoint has a few
    alone.subtract((tensor.dtype, tensor.shape) for tensor in shared)
    sizes = [(math.prod(shape), dtype, times) for (dtype, shape), times in alone.items()]
    sizes += [(contents.sharing[tensor.name].new, tensor.dtype, 1) for tensor in shared]
    return (
        sum(size * times for size, _, times in sizes),
        sum(size_in_bytes(size, dtype) * times for size, dtype, times in sizes),
    )


def _entries(path: Location, contents: WeightsFile, packed: FoundPacked) -> list[Entry]:
    """The stored tensors, with what is known of each without a config."""
    try:
        entries = [_known(entry, contents, packed) for entry in _rolled(contents, packed)]
    except BadInput as error:
        raise BadInput(f"{path}: {error}", code=error.code) from None
    if contents.own_names:  # a format with names of its own tells all by them
        return entries
    return [entry._replace(role=told.role) for entry, told in zip(entries, told_roles(entries), strict=True)]


def _known(entry: Entry, contents: WeightsFile, packed: FoundPacked) -> Entry:
    """A stored tensor with what is known of it without a config.

    The format and the way of packing know single names; else well-known ones tell.
    """
    role, name = (contents.role or role_of)(entry.name), next(entry.unrolled()).name
    named = not contents.own_names and is_buffer(entry.name, entry.shape)
    beside = name in packed.beside or (named and is_quantisation(entry.name))
    return entry._replace(
        role=role,
        active=contents.experts_used if role == "experts" else None,
        buffer=named or beside or name in contents.buffers,
        packed=size_in_bytes(entry.size, entry.dtype) if beside else entry.packed,
    )


def _rolled(contents: WeightsFile, packed: FoundPacked) -> Iterator[Entry]:
    """Stacks of tensors, and one by one those that share memory; roles are not told yet."""

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
        unique = math.prod(shape) * bool(new) if name in packed.weights else new  # packed values are shared whole
        yield Entry(name, shape, "other", dtype, owner, unique, packed=sizes.get(name))


class _Beside(NamedTuple):
    """What is made of the config beside a checkpoint."""

    ledgers: tuple[Ledger, ...] = ()  # what it describes, one for each layout of names; none for a type not known
    headless: bool = False  # saved from a class without an LM head
    notes: tuple[str, ...] = ()
    foreign: Mapping[str, Any] = {}  # its values, where its type is not native
    unread: str | None = None  # why it could not be used
    values: Mapping[str, Any] = {}  # all that it says, known or not
    adapter: bool = False  # whether the checkpoint is one of PEFT


def _beside(config: Location, overrides: Mapping[str, Any]) -> _Beside:
    """Read the config next to a checkpoint, if any. Why it cannot be read becomes a note, unless overrides need it."""
    try:
        values = read_json(config)
        if not isinstance(values, dict):
            raise BadInput(f"{config} holds {shown(values)}, expected an object with a model_type", code="not-a-config")
    except NotThere:
        if overrides:
            raise BadInput(f"there is no {config} to set {', '.join(overrides)} in", code="unknown-key") from None
        return _Beside()
    except BadInput as error:
        return _unread(error, overrides)
    return _described(values, overrides, str(config))


def _described(values: Mapping[str, Any], overrides: Mapping[str, Any], source: str) -> _Beside:
    """What the values of a config tell."""
    beside = _Beside(values=values)
    try:
        if is_params(values):
            model_type_of({**values, **overrides}, source)  # raises for Meta's keys: their tensors have other names
        asked = resolve(values, overrides, source)
        if asked.family is None or asked.is_part:
            said = asked.classes[0] if asked.family and asked.classes else asked.model_type
            unknown = f"{Path(source).name} says {quoted(said)}, which is not known natively"
            if overrides:
                raise BadInput(f"{unknown}: nothing reads {', '.join(overrides)}", code="unknown-key")
            refuse_odd_flag(values, source)
            return beside._replace(notes=(f"{unknown}: roles by name",), foreign=values)
        return beside._replace(ledgers=layouts(asked), headless=asked.headless)
    except BadInput as error:
        return _unread(error, overrides)._replace(values=values)


def _unread(error: BadInput, overrides: Mapping[str, Any]) -> _Beside:
    if overrides:
        raise error  # the user asked for that config to be read
    return _Beside(notes=(f"the config beside the checkpoint was not used: {error}",), unread=str(error))


def _meant_by_flag(values: Mapping[str, Any], entries: list[Entry]) -> list[tuple[str, ...]] | None:
    """Embedding and head, where a config says that they are tied: at its top, or in the part for text."""
    parts = [values, *(values[part] for part in TEXT_PARTS if part in values)]
    flags = [part[TIE] for part in parts if isinstance(part, dict) and TIE in part]
    if not flags or not isinstance(flags[0], bool):
        return None
    pairs: list[tuple[str, ...]] = [*tied_pairs(entries)]
    return pairs[:1] if flags[0] else []


def _aliases(entries: list[Entry], files: Iterable[tuple[Location, Header]]) -> list[Entry]:
    """`__metadata__` maps a name that was dropped on saving to the stored name that it shares with."""
    metadata = {alias: name for _, header in files for alias, name in header.metadata.items()}
    # Most metadata says {"format": "pt"} and names nothing: told before a large checkpoint is unrolled.
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
    told = told_roles([*entries, *aliases])[len(entries) :]
    return [alias._replace(role=one.role) for alias, one in zip(aliases, told, strict=True)]
