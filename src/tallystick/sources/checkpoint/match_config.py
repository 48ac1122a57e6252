"""Match a checkpoint with the config next to it: roles, ties and disagreements."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from tallystick.core import mtp
from tallystick.core.entries import Entry, Tie
from tallystick.core.ledger import Ledger
from tallystick.core.tensor_names import template_of
from tallystick.sources.checkpoint.match import Match, match
from tallystick.sources.notes import further_note, mismatch_notes, wrapper_note

# Heads of classifiers, reward models and value models, which replace the LM head.
_OTHER_HEAD = re.compile(
    r"^(\w+\.){0,2}(score|classifier|classification_head|qa_outputs|out_proj|(v|value|reward|rm|regression)_head)\."
)


def match_config(stored: list[Entry], candidates: Iterable[Ledger], *, headless: bool = False) -> ConfigMatch:
    """Match stored entries with the described layout whose names agree best.

    Args:
        stored: the checkpoint's entries.
        candidates: the config's ledgers, one for each layout of tensor names.
        headless: the checkpoint's class has no LM head, so the head and the layers before it may be
            missing.
    """
    pairs = [(match(stored, ledger), ledger) for ledger in candidates]
    found, described = max(pairs, key=lambda pair: pair[0].agreeing)
    heads = [entry.name for entry in described.rolled if entry.role == "head"]
    others = [real for real, counterpart in found.pairs if counterpart is None and _OTHER_HEAD.search(real.name)]
    if not set(heads) <= set(found.missing):
        others = []  # stored in addition to the described head, not instead of it
    if headless:
        return ConfigMatch(found, described, excused=_around_the_body(described), instead=others)
    return ConfigMatch(found, described, excused=heads if others else (), instead=others)


def _around_the_body(described: Ledger) -> list[str]:
    """Return the entries outside the embedding's module: the head, and BERT's head transform."""
    body = {_module(entry) for entry in described.rolled if entry.role == "token_embedding"}
    return [entry.name for entry in described.rolled if entry.role == "head" or _module(entry) not in body]


def _module(entry: Entry) -> str:
    return entry.name.partition(".")[0]


class ConfigMatch:
    """Stored entries with the config's roles, ties and mismatches."""

    def __init__(
        self, found: Match, described: Ledger, *, excused: Iterable[str] = (), instead: Sequence[Entry] = ()
    ) -> None:
        """Assign roles and fold ties.

        `excused` are described heads that may be absent; `instead` are the entries stored in their
        place.
        """
        self.found, self.described = found, described
        self._absent = frozenset(excused).intersection(found.missing)
        self.notes: list[str] = []
        self.relations: dict[str, str] = {}
        self.entries = self._with_roles()
        there = {template_of(entry.name)[0] for entry in self.entries}
        ties = (tie for tie in self.described.ties if self._absent.isdisjoint(tie.names))
        meant = (tuple(map(self.found.real_name, tie.names)) for tie in ties)
        # A tie with no stored tensor is left out.
        self.meant = [names for names in meant if any(template_of(name)[0] in there for name in names)]
        tied_away = {name for tie in self.described.ties for name in self._fold(tie)}
        further = mtp.among(real for real, counterpart in self.found.pairs if counterpart is None and not real.buffer)
        known = {entry.name for entry in (*further, *instead)}
        self.mismatches = self.found.mismatches(excused=tied_away.union(excused, known))
        self.notes += further_note(further, self.entries)
        if instead:
            names, parameters = sorted(entry.name for entry in instead), sum(entry.unique for entry in instead)
            self.notes.append(f"instead of an LM head: {', '.join(names)} ({parameters:,} parameters)")
        self.notes += mismatch_notes(self.mismatches) + wrapper_note(self.found.prefix[0])
        buffers = sum(real.copies for real, counterpart in self.found.pairs if counterpart is None and real.buffer)
        if buffers:
            self.notes.append(f"{buffers} stored tensors count as buffers: the config's model has no such parameters")

    def _with_roles(self) -> list[Entry]:
        order = {counterpart.name: place for place, counterpart in enumerate(self.described.rolled)}
        entries = []
        for real, counterpart in self.found.pairs:
            if counterpart is None:
                entries.append((len(order), real))
                continue
            entry = real._replace(role=counterpart.role, active=counterpart.active, buffer=counterpart.buffer)
            # A member of a tied group is one layer's tensor, identified by its index.
            singles = entry.unrolled() if counterpart.storage != counterpart.name else (entry,)
            entries += ((order.get(counterpart.name, len(order)), single) for single in singles)
        return [entry for _, entry in sorted(entries, key=lambda pair: pair[0])]

    def _fold(self, tie: Tie) -> list[str]:
        """Fold a described tie into the entries and return the names that are absent because of it.

        Loaders rebuild an absent name from the present one. Whether two present ones are equal
        depends on their values, which a header does not hold.
        """
        places = {entry.name: place for place, entry in enumerate(self.entries)}
        present = [name for name in map(self.found.real_name, tie.names) if name in places]
        if not present:
            return []
        holder = present[0]
        held = self.entries[places[holder]]
        for name in present[1:]:
            entry = self.entries[places[name]]
            if entry.shape != held.shape:  # they cannot be tied; the misshaped one is reported already
                continue
            if entry.storage == held.storage:  # the file stores one tensor under both names
                continue
            self.entries[places[name]] = entry._replace(storage=holder, unique=0)
            self.relations[holder] = "unknown"
            self.notes.append(
                f"{name} is stored although the config ties it to {holder}: counted once; headers do not show"
                " whether the values are equal"
            )
        absent = [name for name in tie.names if self.found.real_name(name) not in places and name not in self._absent]
        for name in absent:
            real, role = self.found.real_name(name), self.described.tensors[name].role
            self.entries.append(held._replace(name=real, storage=held.storage, unique=0, role=role))
        return absent
