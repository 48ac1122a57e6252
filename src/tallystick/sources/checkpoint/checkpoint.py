"""Turn a checkpoint into a ledger from its headers and the config inside or next to it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tallystick.core.budget import current, one_source
from tallystick.core.config import CONFIG, TIE
from tallystick.core.description import ModelDescription
from tallystick.core.entries import Entry
from tallystick.core.evidence import Evidence
from tallystick.core.ledger import Ledger
from tallystick.errors import BadInput, visible
from tallystick.files.remote import Location, Remote
from tallystick.formats.safetensors import parse_header
from tallystick.formats.shards import Named, read_checkpoint
from tallystick.formats.weights_file import WeightsFile
from tallystick.sources.checkpoint.match_config import ConfigMatch, match_config
from tallystick.sources.checkpoint.own_config import OwnConfig, own_config_of, read_own_config, tied_by_flag
from tallystick.sources.checkpoint.peft import WEIGHTS as ADAPTER
from tallystick.sources.checkpoint.peft import adapter_config, adapter_notes
from tallystick.sources.checkpoint.stored_entries import alias_entries, among_neighbours, stored_entries, stored_sizes
from tallystick.sources.checkpoint.values import HandedValues, StoredValues, ValuesElsewhere
from tallystick.sources.gc_paused import gc_paused
from tallystick.sources.notes import NO_HEAD, claim_notes, dtype_notes, notes_by_name, packed_notes
from tallystick.sources.quantized.detect import FoundPacked, find_packed, quantisation_in
from tallystick.sources.roles.embedding_and_head import expected_pairs
from tallystick.sources.text_tensors import left_out, names_described

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
    adapter = adapter_config(path) if path.name.startswith(ADAPTER) else None
    if contents.config is not None:
        context = own_config_of(contents.config, overrides, str(path))
    elif contents.own_names or adapter is not None:
        if overrides:
            raise BadInput(f"{path} has no config to set {', '.join(overrides)} in", code="unknown-key")
        context = OwnConfig()
    else:
        context = read_own_config(config, overrides)
    checkpoint = _checkpoint_of(path, contents, context, source)
    if adapter is not None:
        context = context._replace(notes=adapter_notes(path.parent, adapter, checkpoint.entries), adapter=True)
        checkpoint = checkpoint._replace(context=context)
    if context.ledgers:
        ledger = checkpoint.ledger(checkpoint.match(context.ledgers, headless=context.headless))
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
    context = OwnConfig(values=config)
    whole = _checkpoint_of(path, read_checkpoint(path, shards), context, source)
    names = names_described(whole.entries, layouts)
    matched = None
    if not names:
        try:
            matched = whole.match_transformers(config, language=True)
        except BadInput as error:
            raise BadInput(
                f"{source}: cannot tell the language part from the names alone; {error}", code=error.code
            ) from None
        names = frozenset(stored.name for stored, _ in matched.found.pairs)
    context = context._replace(notes=left_out(whole.entries, names))
    part = _checkpoint_of(path, _only(whole, names), context, source)
    return part.ledger(matched or part.match(layouts))


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


def _checkpoint_of(path: Location, contents: WeightsFile, context: OwnConfig, source: str) -> _Checkpoint:
    """Return a checkpoint's entries with its packed weights found and its values accessible."""
    values = _values_of(path)(contents.files)
    try:
        packed = _packed(contents, context.values, values.peek)
    except BadInput as error:
        raise BadInput(f"{path}: {error}", code=error.code) from None
    values.packed = packed.weights
    return _Checkpoint(path, source, contents, packed, stored_entries(path, contents, packed), context, values)


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
        return _Checkpoint(
            path, source, contents, packed, stored_entries(path, contents, packed), OwnConfig(), None
        ).ledger(None)


class _Checkpoint(NamedTuple):
    """The content of a checkpoint before a config assigns roles and ties."""

    path: Location
    source: str
    contents: WeightsFile
    packed: FoundPacked
    entries: list[Entry]  # each with the role that its own name says
    context: OwnConfig
    values: StoredValues | ValuesElsewhere | None  # None if only the header is available

    def with_roles(self) -> list[Entry]:
        """Return the entries with the roles that their neighbours tell too."""
        return among_neighbours(self.entries, self.contents)

    def match(self, layouts: Sequence[Ledger], *, headless: bool = False) -> ConfigMatch:
        """Match the tensors with a config's; neighbours tell the roles of those that it lacks."""
        matched = match_config(self.entries, layouts, headless=headless)
        if all(counterpart is not None or real.buffer for real, counterpart in matched.found.pairs):
            return matched
        return match_config(self.with_roles(), layouts, headless=headless)

    def match_transformers(self, config: Mapping[str, Any], *, language: bool = False) -> ConfigMatch:
        """Match the tensors with the model that transformers builds from a config.

        Raises:
            BadInput: if transformers is missing or fails.
        """
        from tallystick.sources.transformers_meta.loader_names import match_transformers  # few checkpoints need it

        assert self.values is not None  # noqa: S101  # a config is read only if the files are available
        with current().paused():
            return match_transformers(self.with_roles(), config, self.values, source=CONFIG, language=language)

    def ledger(
        self, matched: ConfigMatch | None, doubts: Sequence[str] = (), ask: Callable[[], Ledger] | None = None
    ) -> Ledger:
        """Return the ledger of the stored tensors, with the roles and ties that a config states."""
        entries = list(matched.entries if matched else self.with_roles())
        entries += alias_entries(entries, self.contents.files)
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
        meant = matched.meant if matched else tied_by_flag(self.context.foreign, entries)
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
                stored=stored_sizes(self.contents),
                values=self.values,
                ask=ask,
            ),
        )

    def _overlaps(self) -> dict[str, str]:
        """Return the storages that tensors of a file share only in part; they are aliased."""
        return {one.owner: "aliased" for one in self.contents.sharing.values() if not one.whole}

    def asked(self) -> Ledger:
        """Return the ledger with ties from transformers, or from the flag if transformers fails."""
        try:
            return self.ledger(self.match_transformers(self.context.foreign))
        except BadInput as error:
            return self.ledger(None, [f"ties were read from the flag {TIE} only: {error}"])


def _packed(contents: WeightsFile, config: Mapping[str, Any], peek: Callable[[str], bytes | None]) -> FoundPacked:
    """Return the packed weights of a checkpoint; none for formats with their own tensor names."""
    if contents.own_names:
        return FoundPacked()
    metadata = {key: value for _, header in contents.files for key, value in header.metadata.items()}
    found = find_packed(contents.tensors, quantisation_in(config), metadata, peek)
    return FoundPacked({**found.weights, **contents.weights}, found.auxiliary | contents.auxiliary)
