"""The ledger of a config whose model type is native, and the recipe that rebuilds it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from tallystick import architectures
from tallystick.core import mtp
from tallystick.core.config import LARGEST, REQUIRED, TIE, Config, merged
from tallystick.core.entries import Entry
from tallystick.core.layout import lay_out, read
from tallystick.core.ledger import Ledger
from tallystick.core.nodes import Model
from tallystick.core.registry import Architecture, ModelVariant
from tallystick.errors import BadInput, shown
from tallystick.sources.configs.classes import (
    labels_of,
    note_of,
    variants_of,
)
from tallystick.sources.configs.resolve import TEXT_PARTS, Resolved

# Limit: every described tensor that a checkpoint lacks is listed. The largest models have some
# 100,000 tensors.
MOST_DESCRIBED = 1_000_000


def native_ledger(asked: Resolved, *, kind: str = "config", published: bool = False) -> Ledger:
    """Return the ledger of the native class that a resolved config names.

    Args:
        asked: a resolved config with a native family.
        kind: ``"config"`` or ``"preset"``.
        published: use the names of published files (one tensor per expert).

    Raises:
        BadInput: if a key is unknown or a value is out of range.
    """
    source, family = asked.source, asked.native
    assert family is not None  # noqa: S101  # who calls has asked
    recipe = _Recipe(family, published=published, variant=asked.variant)
    inside, keys, aliases = asked.parts, recipe.keys, recipe.aliases
    values, overrides = asked.flat
    stated = {**values, **labels_of(values)} if "num_labels" in keys else values
    typed = (f"{name}.model_type" for name, part in inside.items() if part.model_type)
    settings = merged(stated, overrides, known={*keys, *family.running, *inside, *typed}, aliases=aliases, where=source)
    config = recipe.config(settings, where=source, aliases=aliases)
    dtype = config.dtype or next((found for part in inside if (found := config.part(part).dtype)), "float32")
    model = recipe.model(config)
    required = config.in_force(name for name, key in family.running.items() if key is REQUIRED)
    entries, description = read(model, dtype=dtype)
    description = replace(
        description,
        architecture=family.name,
        symbols=config.symbols,
        positions=positions_in(asked.stated),
        stretch=stretch_in(asked.stated),
        recipe=recipe._replace(values=config.in_force(keys), dtype=dtype, required=required),
    )
    notes = (*asked.notes, *note_of(settings, family))
    ledger = Ledger(tuple(entries), source=source, kind=kind, notes=notes, model=description)
    if not settings.keys().isdisjoint(mtp.KEYS) and (layers := mtp.stated(settings)):
        ledger = ledger.with_notes(_further_note(layers, ledger if mtp.LAYERS in family.running else None))
    if family.name.startswith("book_") and TIE not in settings:
        ledger = ledger.with_notes(_book_note(ledger))
    return ledger


def refuse_too_many(ledgers: Sequence[Ledger], source: str) -> None:
    """Raise `BadInput` if a config describes too many tensors to be matched name by name."""
    if any(sum(entry.copies for entry in ledger.rolled) > MOST_DESCRIBED for ledger in ledgers):
        raise BadInput(f"{source} describes more than {MOST_DESCRIBED:,} tensors", code="too-large")


class _Recipe(NamedTuple):
    """A family with the values of the keys that change a tensor.

    It can rebuild the entries with others.
    """

    architecture: Architecture
    values: Mapping[str, Any] = {}
    dtype: str = ""
    published: bool = False
    variant: ModelVariant | None = None  # the counted class, if it is not the language model
    required: Mapping[str, Any] = {}  # of keys that change no tensor, those that the config must state

    @property
    def family(self) -> str:
        """The model type and what replaces the LM head, to distinguish two classes of a type."""
        other = f", {self.variant.head}" if self.variant and self.variant.head else ""
        return self.architecture.name + other

    @property
    def keys(self) -> dict[str, Any]:
        """The keys that change a tensor of the class."""
        return {**self.architecture.keys, **(self.variant.keys if self.variant else {})}

    @property
    def aliases(self) -> dict[str, str]:
        return {**self.architecture.aliases, **(self.variant.aliases if self.variant else {})}

    def config(self, values: Mapping[str, Any], *, where: str, aliases: Mapping[str, str] | None = None) -> Config:
        """Return a `Config` that reads `values` for this class."""
        keys, headed = {**self.keys, **self.architecture.running}, self.variant is None
        return Config(values, keys, where=where, aliases=aliases, published=self.published, headed=headed)

    def model(self, config: Config) -> Model:
        """Return the model of this class for a config."""
        model = self.architecture.build(config)
        return self.variant.make(config, model) if self.variant else model

    def entries(self, values: Mapping[str, Any]) -> tuple[Entry, ...]:
        config = self.config({**self.required, **values}, where=self.family)
        return tuple(lay_out(self.model(config), dtype=self.dtype))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy by the names of family and class, because the builders are code."""
        others = variants_of(self.architecture)
        named = next((name for name, variant in others.items() if variant is self.variant), "")
        return _recipe, (self.architecture.name, named, self.values, self.dtype, self.published, self.required)


def _recipe(
    family: str, named: str, values: Mapping[str, Any], dtype: str, published: bool, required: Mapping[str, Any]
) -> _Recipe:
    """Rebuild a recipe from the values that `_Recipe.__reduce__` kept."""
    architecture = architectures.find(family)
    assert architecture is not None  # noqa: S101  # it was found when the ledger was made
    return _Recipe(architecture, values, dtype, published, variants_of(architecture).get(named), required)


def dtype_in(values: Mapping[str, Any]) -> str | None:
    """Return the dtype that a config states at its top or in a part, or None."""
    parts = (part for part in values.values() if isinstance(part, Mapping))
    found = (one.get(key) for one in (values, *parts) for key in ("dtype", "torch_dtype"))
    return next((one.removeprefix("torch.") for one in found if isinstance(one, str) and one), None)


def dtype_note(values: Mapping[str, Any], overrides: Mapping[str, Any]) -> list[str]:
    """Return a note if a config of a published kind, unlike those of a course, states no dtype."""
    model_type = values.get("model_type")
    published = isinstance(model_type, str) and model_type not in architectures.TEACHING
    if not published or dtype_in({**values, **overrides}) is not None:
        return []
    return ["the config states no dtype: assumed float32; change it with --set dtype=bfloat16"]


def positions_in(values: Mapping[str, Any]) -> int | None:
    """Return the maximum sequence length in tokens that a config states, or None."""
    parts = (values.get(part) for part in TEXT_PARTS)
    found = (one.get(key) for one in (values, *parts) if isinstance(one, Mapping) for key in _POSITIONS)
    return next((count for count in found if type(count) is int and 0 < count <= LARGEST), None)


def stretch_in(values: Mapping[str, Any]) -> float:
    """Return how many times as many positions a config's rotary scaling makes; 1 without one.

    YaRN scales ``original_max_position_embeddings``, which may be fewer than the config's.
    """
    for part in (values.get(name) for name in ("", *TEXT_PARTS)):
        one = values if part is None else part
        scaling = one.get("rope_scaling") or one.get("rope_parameters") if isinstance(one, Mapping) else None
        kinds = [scaling, *scaling.values()] if isinstance(scaling, Mapping) else []
        for kind in kinds:  # a config with kinds of layers states the scaling of each
            word = kind.get("rope_type", kind.get("type")) if isinstance(kind, Mapping) else None
            factor = kind.get("factor") if word in ("linear", "dynamic", "yarn") else None
            if not isinstance(factor, int | float) or isinstance(factor, bool) or not 1 <= factor <= MOST_STRETCHED:
                continue
            original, stated = kind.get("original_max_position_embeddings"), positions_in(values)
            if word != "yarn" or type(original) is not int or not stated:
                return float(factor)
            return max(original * factor / stated, 1.0)
    return 1.0


MOST_STRETCHED = 10_000  # times; no published config scales more than 64 times
_POSITIONS = ("max_position_embeddings", "n_positions", "max_sequence_length", "max_seq_len", "seq_length")


def refuse_odd_flag(values: Mapping[str, Any], source: str) -> None:
    """Raise `BadInput` if a tie flag is not true or false, at the top or in a part of any config.

    Loaders disagree on "false" and null: some treat any word as true.
    """
    parts = {f"{name}.{TIE}": part[TIE] for name, part in values.items() if isinstance(part, Mapping) and TIE in part}
    for name, flag in {**parts, **values}.items():
        if str(name).rpartition(".")[2] == TIE and not isinstance(flag, bool):
            raise BadInput(f"{source}: {name} is {shown(flag)}, expected true or false", code="bad-value")


def _further_note(layers: int, alike: Ledger | None) -> str:
    """Return a note on multi-token prediction layers.

    `alike` is the model's ledger if these layers are like its own.
    """
    count = f", with {layers * mtp.parameters_of_one(alike.parameters):,} additional parameters" if alike else ""
    what = f"multi-token prediction layers ({layers}{count})"
    return f"not part of the causal language model, so not counted: {what}"


def _book_note(ledger: Ledger) -> str:
    head = sum(entry.unique for entry in ledger.parameters if entry.role == "head")
    return (
        "the head is counted as separate, as in the book; tied to the embedding, the model has"
        f" {ledger.total - head:,} parameters (set tie_word_embeddings to true)"
    )
