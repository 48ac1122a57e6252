"""A model type that is not known natively is built by transformers, on the meta device: shapes, no memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tallystick import architectures
from tallystick.errors import BadInput, nearest, quoted, shown
from tallystick.ledger import Ledger

if TYPE_CHECKING:
    from transformers import PreTrainedModel

MOST_LAYERS = 10_000  # each is many Python objects, even on the meta device


def ledger_by_transformers(
    model_type: str, values: Mapping[str, Any], overrides: Mapping[str, Any], *, source: str
) -> Ledger:
    """The ledger of what transformers builds from a config. Needs the extra ``hf``; runs no remote code."""
    model = built_by_transformers(model_type, values, overrides, source=source)
    import transformers

    from tallystick.sources.module import ledger_from_module

    ledger = ledger_from_module(model, source=source)
    ledger.kind = "config"
    ledger.architecture = model_type
    built = f"{model_type} is not known natively: {type(model).__name__} was built by transformers {transformers.__version__}"
    ledger.notes = (f"{built} on the meta device", *ledger.notes)
    return ledger


def built_by_transformers(
    model_type: str,
    values: Mapping[str, Any],
    overrides: Mapping[str, Any],
    *,
    source: str,
    classes: Sequence[str] = (),
) -> PreTrainedModel:
    """The model of a config, without weights: of the first of `classes` that takes such a config, or a language model."""
    try:
        import torch
        import transformers
    except ImportError:
        raise BadInput(
            f"{source}: the model type {quoted(model_type)} is not known natively"
            f"{nearest(model_type, architectures.known())}; to have transformers build it:"
            " pip install 'tallystick[hf]'"
        ) from None
    if model_type not in transformers.CONFIG_MAPPING:
        types = {*transformers.CONFIG_MAPPING.keys(), *architectures.known()}
        raise BadInput(
            f"{source}: neither tallystick nor transformers {transformers.__version__} knows the model type"
            f" {quoted(model_type)}{nearest(model_type, types)}"
        )
    _refuse_too_many({**values, **overrides}, source)
    verbosity = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity_error()
    try:
        if overrides:
            _refuse_unread(transformers.CONFIG_MAPPING[model_type](), values, overrides, source)
        # auto_map names code to download, for which transformers would ask on the terminal.
        stated = _with_floats({**values, **overrides})
        kept = {key: value for key, value in stated.items() if key not in ("model_type", "auto_map")}
        config = transformers.AutoConfig.for_model(model_type, **kept)
        with torch.device("meta"):
            return _build(config, classes)
    except BadInput:
        raise
    except Exception as error:  # whatever a config makes transformers raise is the config's fault, said in one line
        raise BadInput(f"{source}: transformers cannot build it: {_one_line(error)}") from error
    finally:
        transformers.logging.set_verbosity(verbosity)


def _refuse_too_many(values: Mapping[str, Any], source: str) -> None:
    """A config that asks for so many layers, at its top or in a part of it, that building them takes hours."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            _refuse_too_many(value, source)
        elif str(key).endswith(("layer", "layers")) and isinstance(value, int) and value > MOST_LAYERS:
            raise BadInput(f"{source}: {key} is {shown(value)}, too many for transformers to build one by one")


def _refuse_unread(known: Any, values: Mapping[str, Any], overrides: Mapping[str, Any], source: str) -> None:
    """A key that transformers does not know it would keep, and read nowhere."""
    for key in overrides:
        if key not in values and not hasattr(known, key):
            raise BadInput(f"{source} has no key {quoted(key)} to set{nearest(key, known.to_dict())}")


def _with_floats(value: Any) -> Any:
    """A config's values, with the infinities that transformers writes as ``{"__float__": "Infinity"}``."""
    if isinstance(value, Mapping):
        if value.keys() == {"__float__"}:
            return float(value["__float__"])
        return {key: _with_floats(inner) for key, inner in value.items()}
    return [_with_floats(inner) for inner in value] if isinstance(value, list) else value


def _build(config: Any, classes: Sequence[str]) -> PreTrainedModel:
    import transformers

    for name in classes:
        kind = getattr(transformers, name, None)
        if isinstance(kind, type) and getattr(kind, "config_class", None) is type(config):
            return kind(config)
    return _family(config).from_config(config)


def _family(config: Any) -> Any:
    """The first of transformers' families that builds this config: causal language models before all others."""
    import transformers

    for auto in (
        "AutoModelForCausalLM",
        "AutoModelForSeq2SeqLM",
        "AutoModelForImageTextToText",
        "AutoModelForMaskedLM",
    ):
        family = getattr(transformers, auto)
        if type(config) in family._model_mapping:
            alone = _takes_part(family._model_mapping[type(config)], config)
            return transformers.AutoModelForTextToWaveform if alone else family
    return transformers.AutoModel


def _takes_part(kind: Any, config: Any) -> bool:
    """Whether a class takes a part of the config other than its text, as MusicGen's decoder does: no family hands that on."""
    parts = {name: part for name, part in config.sub_configs.items() if name != "text_config"}
    return getattr(kind, "config_class", None) in parts.values()


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:200]}" if text else type(error).__name__
