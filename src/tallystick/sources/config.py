"""A config becomes a ledger: Hugging Face's keys, the book's, nanoGPT's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from tallystick import architectures, mtp
from tallystick.blueprint import Architecture, Model
from tallystick.config import Config, flat, merged, whole
from tallystick.errors import BadInput, nearest, shown
from tallystick.layout import attending, lay_out, mixing, parts, recurring, towers
from tallystick.ledger import Entry, Ledger
from tallystick.sources.classes import LABELS, as_classifier, classes_of, is_classifier, labels_of, note_of, type_of

CONFIG = "config.json"
FLAG = "tie_word_embeddings"
TEXT_PARTS = (
    "text_config",
    "llm_config",
    "language_config",
)  # where configs of images and sound keep that of their text

# Dictionaries without a model_type, known by the keys that no other kind uses.
DIALECTS = (
    ("book_llama", {"emb_dim", "hidden_dim"}),
    ("book_gpt", {"emb_dim"}),
    ("nanogpt", {"block_size", "n_embd"}),
)


def ledger_from_config(
    values: Mapping[str, Any],
    overrides: Mapping[str, Any],
    *,
    source: str,
    kind: str = "config",
    published: bool = False,
) -> Ledger:
    """The ledger of the model that a config describes.

    Args:
        values: the config as a dictionary.
        overrides: keys to set over it; one that nothing reads raises `BadInput`.
        source: what the user named, for messages.
        kind: ``"config"`` or ``"preset"``.
        published: use the names of published files (experts one by one), not those of transformers 5 (experts fused).
    """
    if not isinstance(values, Mapping):
        raise BadInput(f"{source} holds {shown(values)}, expected a config: an object with a model_type")
    family = native(values, overrides, source)
    if family is None:
        from tallystick.sources.fallback import ledger_by_transformers

        model_type = model_type_of({**values, **overrides}, source)
        refuse_odd_flag({**values, **overrides}, source)
        return ledger_by_transformers(model_type, values, overrides, source=source)
    values, overrides = (flat(given, family.parts, source) for given in (whole(values, family.parts), overrides))
    labelled = {LABELS: 2} if is_classifier(values, family) else {}
    keys = {**family.keys, **family.running, **labelled}
    stated = {**values, **labels_of(values)} if labelled else values
    typed = (f"{name}.model_type" for name, part in family.parts.items() if part.model_type)
    known = {*keys, *family.parts, *typed}
    settings = merged(stated, overrides, known=known, aliases=family.aliases, where=source)
    config = Config(settings, keys, where=source, aliases=family.aliases, published=published)
    dtype = config.dtype or next((found for part in family.parts if (found := config.part(part).dtype)), "float32")
    model = _built(family, config, bool(labelled))
    ledger = Ledger(
        lay_out(model, dtype=dtype),
        source=source,
        kind=kind,
        architecture=family.name,
        symbols=config.symbols,
        notes=note_of(settings, family),
        attending=attending(model),
        recurring=recurring(model),
        mixing=mixing(model),
        irregular=model.irregular,
        towers=towers(model),
        recipe=_Recipe(family, config.in_force({**family.keys, **labelled}), dtype, published, bool(labelled)),
        parts=parts(model),
    )
    if layers := mtp.stated(settings):
        ledger.notes += (_further_note(layers, ledger if mtp.LAYERS in family.running else None),)
    if family.name.startswith("book_") and "tie_word_embeddings" not in settings:
        ledger.notes += (_book_note(ledger),)
    return ledger


class _Recipe(NamedTuple):
    """A family with the values of the keys that change a tensor, to be laid out anew with others."""

    architecture: Architecture
    values: Mapping[str, Any]
    dtype: str
    published: bool
    classifier: bool

    @property
    def family(self) -> str:
        return self.architecture.name

    def entries(self, values: Mapping[str, Any]) -> tuple[Entry, ...]:
        family = self.architecture
        keys = {**family.keys, **family.running, LABELS: 2}
        config = Config(values, keys, where=family.name, published=self.published)
        return tuple(lay_out(_built(family, config, self.classifier), dtype=self.dtype))


def _built(family: Architecture, config: Config, classifier: bool) -> Model:
    model = family.build(config)
    return as_classifier(model, config) if classifier else model


def native(values: Mapping[str, Any], overrides: Mapping[str, Any], source: str) -> Architecture | None:
    """The family of a config's type; None where there is none, or where a part is of another type than the family reads."""
    family = architectures.find(model_type_of({**values, **overrides}, source))
    if family is None:
        return None
    stated = flat(values, family.parts, source) | flat(overrides, family.parts, source)
    for name, part in family.parts.items():
        if part.model_type and stated.get(f"{name}.model_type") not in (None, "", part.model_type):
            return None
    return family


def model_type_of(values: Mapping[str, Any], source: str) -> str:
    """The model type that a config states, or that its keys or class name give away."""
    stated = values.get("model_type")
    if stated is not None:
        if not isinstance(stated, str) or not stated:
            raise BadInput(f"{source}: model_type is {shown(stated)}, expected a word such as gpt2")
        return stated
    for name, needed in DIALECTS:
        if needed <= values.keys():
            return name
    if named := next(filter(None, map(type_of, classes_of(values))), ""):
        return named
    keys = [key for _, needed in DIALECTS for key in needed]
    raise BadInput(
        f"{source} is no model config: it has neither a model_type nor the keys of a known kind"
        f" (emb_dim, or block_size and n_embd){''.join(_misspelt(key, keys) for key in values)}"
    )


def refuse_odd_flag(values: Mapping[str, Any], source: str) -> None:
    """Refuse a tie that is said otherwise than by true or false, at the top or in a part of a config of any type.

    Loaders read "false" and null each in a way of their own: to some a word is true, whatever it says.
    """
    parts = {
        f"{name}.{FLAG}": part[FLAG] for name, part in values.items() if isinstance(part, Mapping) and FLAG in part
    }
    for name, flag in {**parts, **values}.items():
        if str(name).rpartition(".")[2] == FLAG and not isinstance(flag, bool):
            raise BadInput(f"{source}: {name} is {shown(flag)}, expected true or false")


def _misspelt(key: object, known: list[str]) -> str:
    return f"; {key!r}{nearest(key, known, most=1)}" if isinstance(key, str) and nearest(key, known) else ""


def _further_note(layers: int, alike: Ledger | None) -> str:
    """What a config says of layers for multi-token prediction; `alike` is the model, where theirs are like its own."""
    count = f", with {layers * mtp.parameters_of_one(alike.parameters):,} parameters of their own" if alike else ""
    what = f"layers for multi-token prediction ({layers}{count})"
    return f"not counted, as the causal language model leaves them out: {what}"


def _book_note(ledger: Ledger) -> str:
    head = sum(entry.unique for entry in ledger.parameters if entry.role == "head")
    return (
        f"the head is counted as the book builds it, with a matrix of its own; tied to the token embedding the model"
        f" has {ledger.total - head:,} parameters (set tie_word_embeddings to true)"
    )
