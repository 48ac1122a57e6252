"""Read a PEFT adapter: its kind, rank, target modules and base model."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tallystick.core.config import ADAPTER_CONFIG
from tallystick.core.entries import Entry
from tallystick.errors import BadInput, grouped, quoted, shown
from tallystick.files.remote import Location, NotThere
from tallystick.files.texts import read_json

WEIGHTS = "adapter_model."  # how the name of an adapter's file begins

# peft 0.21, `get_peft_model_state_dict`: the adapter's name is removed from the saved tensor names.
_FIRST, _SECOND = re.compile(r"\.lora_(?:embedding_)?A(?=\.|$)"), re.compile(r"\.lora_(?:embedding_)?B(?=\.|$)")
_ADAPTER = re.compile(
    r"(^|[._])(lora_|ia3_l|prompt_e|prefix_|adaption_|hada_|lokr_|vera_|oft_|boft_|randlora_|trainable_tokens_)"
)


def adapter_config(path: Location) -> dict[str, Any] | None:
    """Return the `adapter_config.json` next to an adapter's weights, or None.

    Raises:
        BadInput: if the config cannot be read.
    """
    config = path.parent / ADAPTER_CONFIG
    try:
        values = read_json(config)
    except NotThere:
        return None
    if not isinstance(values, dict):
        raise BadInput(f"{config} holds {shown(values)}, expected an object with a peft_type", code="malformed")
    return values


def adapter_notes(folder: Location, values: Mapping[str, Any], entries: Iterable[Entry]) -> tuple[str, ...]:
    """Return notes on an adapter: kind, rank and targets from its tensors, and its base model.

    Args:
        folder: the adapter's folder, for messages.
        values: the adapter's config.
        entries: the adapter's tensors.

    Raises:
        BadInput: if the two matrices of one module do not fit together.
    """
    singles = [single for entry in entries for single in entry.unrolled()]
    kind, base = values.get("peft_type"), values.get("base_model_name_or_path")
    said = f"a PEFT adapter ({kind if isinstance(kind, str) else shown(kind)})".replace("\n", " ")
    ranks = _ranks(folder, singles)
    if ranks:
        modules = dict.fromkeys(name.rpartition(".")[2] for name in ranks)
        said += f", rank {_listed(sorted(set(ranks.values())))} on {_listed(list(modules))} ({len(ranks)} modules)"
    whose = quoted(base) if isinstance(base, str) and base else "an unnamed base model"
    notes = [f"{said}, for {whose} (base model not counted)"]
    stated = values.get("r")
    if ranks and not values.get("rank_pattern") and isinstance(stated, int) and set(ranks.values()) != {stated}:
        notes.append(
            f"{ADAPTER_CONFIG} says rank {grouped(stated)}, but the tensors have rank {_listed(sorted(set(ranks.values())))}"
        )
    whole = [single for single in singles if not _ADAPTER.search(single.name)]
    if whole:
        parameters = sum(single.unique for single in whole)
        notes.append(
            f"complete tensors in addition: {_listed([one.name for one in whole])} ({parameters:,} parameters)"
        )
    return tuple(note if note.isprintable() else quoted(note, most=300) for note in notes)


def _ranks(folder: Location, singles: Sequence[Entry]) -> Mapping[str, int]:
    """Return the rank of each module with LoRA's A and B; an embedding's A is also (rank, rows)."""
    first = {_FIRST.split(one.name)[0]: one for one in singles if _FIRST.search(one.name)}
    second = {_SECOND.split(one.name)[0]: one for one in singles if _SECOND.search(one.name)}
    for module in first.keys() ^ second.keys():
        there = (first.get(module) or second[module]).name
        raise BadInput(
            f"{folder} holds {quoted(there, most=120)} without its adapter's other matrix", code="incomplete"
        )
    for module, one in first.items():
        other = second[module]
        if len(one.shape) < 2 or len(other.shape) < 2 or one.shape[0] != other.shape[1]:
            raise BadInput(
                f"{folder}: {quoted(one.name, most=120)} of shape {one.shape} and {quoted(other.name, most=120)}"
                f" of shape {other.shape} have different ranks: the file is broken",
                code="malformed",
            )
    return {module: int(one.shape[0]) for module, one in first.items()}


def _listed(items: Sequence[Any], most: int = 8) -> str:
    return ", ".join(map(str, items[:most])) + (", …" if len(items) > most else "")
