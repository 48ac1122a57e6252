"""Count a model type that is not native: transformers builds it on the meta device."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import Any, NamedTuple

from tallystick import architectures
from tallystick.core.description import ModelDescription
from tallystick.core.ledger import Ledger
from tallystick.errors import BadInput, nearest, quoted
from tallystick.extras import pip_install
from tallystick.isolation.sealed import Refused, sealed
from tallystick.sources.configs.classes import classes_of, contradiction
from tallystick.sources.configs.native import dtype_in, positions_in
from tallystick.sources.torch_module.facts import ModuleFacts
from tallystick.sources.torch_module.module import ledger_of_facts
from tallystick.sources.transformers_meta.language import language_of, vision_of
from tallystick.sources.transformers_meta.process import ask
from tallystick.versions import OLDEST, is_too_old, require

# Limit on modules and parameters: 2,048 experts in each of 15 layers are some 215,000.
MOST_BUILT = 250_000


class Built(NamedTuple):
    """The model that transformers built from a config."""

    facts: ModuleFacts
    version: str  # of transformers
    config: Mapping[str, Any]  # the model's config, with the keys that transformers adds
    loaded: Mapping[str, str]  # stored name -> the model's name
    language: frozenset[str] | None  # the names of the language part, if requested


def ledger_by_transformers(
    model_type: str, values: Mapping[str, Any], overrides: Mapping[str, Any], *, source: str
) -> Ledger:
    """Return the ledger of the model that transformers builds from a config.

    The class is the one that the config names, if its type has that class. This needs the extra
    ``hf`` and runs no remote code.

    Args:
        model_type: the config's model type.
        values: the config.
        overrides: keys to set over the config.
        source: the user's name for the config, for messages.

    Raises:
        BadInput: if transformers is not installed, does not know the type, or cannot build it.
    """
    classes, values = classes_of({**values, **overrides}), with_dtype(values)
    built = built_by_transformers(model_type, values, overrides, source=source, classes=classes)
    ledger = ledger_of_facts(built.facts, source=source)
    stated = ledger.model.positions or positions_in(values)
    model = replace(
        ledger.model,
        architecture=model_type,
        positions=stated,
        language=language_of(built.config, source),
        vision=vision_of(built.config),
    )
    name, family = built.facts.class_name, architectures.find(model_type)
    if family is None:
        what = model_type
    else:
        what = f"this class of {model_type}" if name in classes else f"{model_type} with parts of these types"
    by = f"{what} is not known natively: {name} was built by transformers {built.version}"
    other = (contradiction(classes[0], model_type, name),) if classes and name not in classes else ()
    notes = (f"{by} on the meta device", *other, *ledger.notes)
    return replace(ledger, kind="config", model=model, notes=notes)


def language_by_transformers(
    model_type: str, values: Mapping[str, Any], overrides: Mapping[str, Any], *, source: str
) -> Ledger:
    """Return the ledger of only the language part of the model that transformers builds.

    Args:
        model_type: the config's model type.
        values: the config.
        overrides: keys to set over the config.
        source: the user's name for the config, for messages.

    Raises:
        BadInput: if transformers cannot build the model, or it has no separate language part.
    """
    classes, values = classes_of({**values, **overrides}), with_dtype(values)
    built = built_by_transformers(model_type, values, overrides, source=source, classes=classes, language=True)
    entries = tuple(entry for entry in ledger_of_facts(built.facts).rolled if entry.name in (built.language or ()))
    note = f"language part only, of {built.facts.class_name}, which transformers built on the meta device"
    return Ledger(entries, source=source, kind="config", notes=(note,), model=ModelDescription(model_type))


def with_dtype(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a config with the dtype of a nested config at its top.

    transformers builds in the top dtype.
    """
    found = dtype_in(values)
    return {**values, "dtype": found} if found and not (values.get("dtype") or values.get("torch_dtype")) else values


def is_known(model_type: object) -> bool:
    """Return whether transformers is installed and knows a model type."""
    return isinstance(model_type, str) and _can_build() and bool(_ask("knows", model_type=model_type))


def has_class(model_type: str, name: str) -> bool:
    """Return whether transformers is installed and has this class for a type's configs.

    Args:
        model_type: the model type.
        name: the name of the class.
    """
    return _can_build() and bool(_ask("knows", model_type=model_type, name=name))


def built_by_transformers(
    model_type: str,
    values: Mapping[str, Any],
    overrides: Mapping[str, Any],
    *,
    source: str,
    classes: Sequence[str] = (),
    stored: Mapping[str, str] | None = None,
    language: bool = False,
) -> Built:
    """Build a config's model without weights.

    The class is the first of `classes` that accepts such a config, or else a language model's.

    Args:
        model_type: the config's model type.
        values: the config.
        overrides: keys to set over the config.
        source: the user's name for the config, for messages.
        classes: names of transformers' classes.
        stored: a checkpoint's tensor names, each with its unpacked name; `loaded` maps them to the
            model's.
        language: whether to return the names of the language part.

    Raises:
        BadInput: if transformers is not installed, does not know the type, or cannot build it.
    """
    if not _is_there():
        raise BadInput(
            f"{source}: the model type {quoted(model_type)} is not known natively"
            f"{nearest(model_type, architectures.known())}; to have transformers build it:"
            f" {pip_install('transformers')}",
            code="unknown-model-type",
        )
    require("torch", "transformers", to=f"to build {quoted(model_type)}, which it does not know natively")
    reply = _ask(
        "build",
        source=source,
        model_type=model_type,
        values=values,
        overrides=overrides,
        classes=classes,
        stored=stored or {},
        language=language,
        most=MOST_BUILT,
    )
    facts, names = ModuleFacts.from_json(reply["facts"]), reply["language"]
    return Built(
        facts, reply["version"], reply["config"], reply["loaded"], frozenset(names) if names is not None else None
    )


def _ask(question: str, *, model_type: str, **arguments: Any) -> Any:
    """Call a function of `build` in the subprocess.

    A type that the user's code registered with transformers is built in this process, sealed.
    """
    auto = sys.modules.get("transformers.models.auto.configuration_auto")
    if auto is None or model_type not in getattr(auto.CONFIG_MAPPING, "_extra_content", ()):
        return ask(question, model_type=model_type, **arguments)
    from transformers.utils import logging

    from tallystick.sources.transformers_meta import build

    build.bring()
    verbosity = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        with sealed():
            return getattr(build, question)(model_type=model_type, **arguments)
    except Refused as refused:
        raise BadInput(
            f"{model_type} would {refused} during its construction, which configs may not cause", code="unsafe"
        ) from None
    finally:
        logging.set_verbosity(verbosity)


def _can_build() -> bool:
    return _is_there() and not any(map(is_too_old, OLDEST))


def _is_there() -> bool:
    try:
        return all(map(find_spec, ("torch", "transformers")))
    except ValueError:  # a module without a spec
        return False
