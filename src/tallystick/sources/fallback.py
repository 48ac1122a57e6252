"""A model type that is not known natively is built by transformers, on the meta device: shapes, no memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from tallystick import architectures
from tallystick.errors import BadInput, nearest, quoted, shown
from tallystick.ledger import Ledger
from tallystick.sources.classes import classes_of, contradiction

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel

# Each is many Python objects, even on the meta device: a thousand layers take seconds.
MOST_LAYERS = 1_000
MOST_BUILT = 300_000  # modules and parameters: 2,048 experts in each of 15 layers are some 215,000


def ledger_by_transformers(
    model_type: str, values: Mapping[str, Any], overrides: Mapping[str, Any], *, source: str
) -> Ledger:
    """The ledger of what transformers builds from a config: of the class that it names, where its type has that one.

    Needs the extra ``hf``; runs no remote code.
    """
    classes = classes_of({**values, **overrides})
    model = built_by_transformers(model_type, values, overrides, source=source, classes=classes)
    import transformers

    from tallystick.sources.module import ledger_from_module

    ledger = ledger_from_module(model, source=source)
    ledger.kind = "config"
    ledger.architecture = model_type
    name, family = type(model).__name__, architectures.find(model_type)
    if family is None:
        what = model_type
    else:
        what = f"this class of {model_type}" if name in classes else f"{model_type} with parts of these types"
    built = f"{what} is not known natively: {name} was built by transformers {transformers.__version__}"
    other = (contradiction(classes[0], model_type, name),) if classes and name not in classes else ()
    ledger.notes = (f"{built} on the meta device", *other, *ledger.notes)
    return ledger


def language_by_transformers(
    model_type: str, values: Mapping[str, Any], overrides: Mapping[str, Any], *, source: str
) -> Ledger:
    """The ledger of the language part alone of what transformers builds from a config."""
    from tallystick.sources.module import ledger_from_module
    from tallystick.sources.part import names_built

    classes = classes_of({**values, **overrides})
    model = built_by_transformers(model_type, values, overrides, source=source, classes=classes)
    names = names_built(model, source)
    entries = [entry for entry in ledger_from_module(model).entries if entry.name in names]
    note = f"the language part alone of {type(model).__name__}, which transformers built on the meta device"
    return Ledger(entries, source=source, kind="config", architecture=model_type, notes=(note,))


def is_known(model_type: object) -> bool:
    """Whether transformers is there, and knows a model type."""
    if not all(map(find_spec, ("torch", "transformers"))):
        return False
    import transformers

    return model_type in transformers.CONFIG_MAPPING


def has_class(model_type: str, name: str) -> bool:
    """Whether transformers is there, and has such a class for configs of a type."""
    if not is_known(model_type):
        return False
    import transformers

    return _takes(name, transformers.CONFIG_MAPPING[model_type]) is not None


def _takes(name: str, config: type) -> Any:
    """The class of transformers with that name, where it is one that takes such a config; else None."""
    import transformers

    kind = getattr(transformers, name, None)
    return kind if isinstance(kind, type) and getattr(kind, "config_class", None) is config else None


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
        if overrides or any("." in str(key) for key in values):
            values = _with_overrides(_known(model_type, values), values, overrides, source)
        config = _config(model_type, values)
        with torch.device("meta"), _not_without_end(source):
            return _build(config, classes)
    except BadInput:
        raise
    except Exception as error:  # whatever a config makes transformers raise is the config's fault, said in one line
        raise BadInput(f"{source}: transformers cannot build it: {_one_line(error)}") from error
    finally:
        transformers.logging.set_verbosity(verbosity)


def _refuse_too_many(values: Mapping[str, Any], source: str, within: str = "") -> None:
    """A config that asks for so many layers, at its top or in a part of it, that building them takes hours."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            _refuse_too_many(value, source, f"{within}{key}.")
        elif str(key).endswith(("layer", "layers")) and isinstance(value, int) and value > MOST_LAYERS:
            raise BadInput(f"{source}: {within}{key} is {shown(value)}, too many for transformers to build one by one")


def _config(model_type: str, values: Mapping[str, Any]) -> PreTrainedConfig:
    import transformers

    # auto_map names code to download, for which transformers would ask on the terminal.
    kept = {key: value for key, value in values.items() if key not in ("model_type", "auto_map")}
    return transformers.AutoConfig.for_model(model_type, **_with_floats(kept))


def _known(model_type: str, values: Mapping[str, Any]) -> PreTrainedConfig:
    """A config with the keys and parts that these values have; of the type alone, where only overrides mend them."""
    try:
        return _config(model_type, values)
    except Exception:  # as above: whatever transformers raises
        return _config(model_type, {})


def _with_overrides(
    known: PreTrainedConfig, values: Mapping[str, Any], overrides: Mapping[str, Any], source: str, within: str = ""
) -> dict[str, Any]:
    """Values with others set over them: those of parts stand under dotted names, or in objects, and are set in the part.

    A key that transformers does not know it would keep, and read nowhere: it is refused.
    """
    dotted = {key: value for key, value in values.items() if "." in str(key) and _part(known, key.partition(".")[0])}
    out = {key: value for key, value in values.items() if key not in dotted}
    for named, value in {**dotted, **overrides}.items():
        name, dot, inner = named.partition(".")
        part = _part(known, name)
        if part is not None and (dot or value is not None):
            before = _beyond_its_type(part) if out.get(name) is None else out[name]
            for given in (before, {} if dot else value):
                if not isinstance(given, Mapping):
                    raise BadInput(f"{source}: {within}{name} is {shown(given)}, expected an object")
            out[name] = _with_overrides(part, before, {inner: value} if dot else value, source, f"{within}{name}.")
        elif named in values or (hasattr(known, named) and not callable(getattr(known, named))):
            out[named] = value
        else:
            near = nearest(within + named, _names(known, within))
            raise BadInput(f"{source} has no key {quoted(within + named)} to set{near}")
    return out


def _part(known: PreTrainedConfig, name: str) -> PreTrainedConfig | None:
    """The config that another has under a key; None where it has none."""
    import transformers

    part = getattr(known, name, None)
    return part if isinstance(part, transformers.PreTrainedConfig) else None


def _names(known: PreTrainedConfig, within: str) -> Iterator[str]:
    """The keys of a config, and under dotted names those of its parts."""
    for name in known.to_dict():
        yield within + name
        if part := _part(known, name):
            yield from _names(part, f"{within}{name}.")


def _beyond_its_type(part: PreTrainedConfig) -> dict[str, Any]:
    """What a part that a config does not state holds other than its type's defaults, as a config would state it."""
    usual = type(part)().to_dict()
    own = {key: value for key, value in part.to_dict().items() if key not in usual or value != usual[key]}
    return {"model_type": part.model_type, **own}


@contextmanager
def _not_without_end(source: str) -> Iterator[None]:
    """Refuse a config of which so much is built, whatever key asks for it, that it would take minutes."""
    from torch.nn.modules import module

    built = 0

    def count(*_: object) -> None:
        nonlocal built
        built += 1
        if built > MOST_BUILT:
            raise BadInput(f"{source}: transformers would build more than {MOST_BUILT:,} modules and parameters for it")

    hooks = [module.register_module_module_registration_hook(count)]
    hooks.append(module.register_module_parameter_registration_hook(count))
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _with_floats(value: Any) -> Any:
    """A config's values, with the infinities that transformers writes as ``{"__float__": "Infinity"}``."""
    if isinstance(value, Mapping):
        if value.keys() == {"__float__"}:
            return float(value["__float__"])
        return {key: _with_floats(inner) for key, inner in value.items()}
    return [_with_floats(inner) for inner in value] if isinstance(value, list) else value


def _build(config: Any, classes: Sequence[str]) -> PreTrainedModel:
    for name in classes:
        if kind := _takes(name, type(config)):
            return kind._from_config(config)  # as its families do, in the dtype that it says
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
