"""A model type that is not known natively: built by transformers, in a process of its own, on the meta device."""

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
from tallystick.sources.configs.config import dtype_in, positions_in
from tallystick.sources.torch_module.facts import ModuleFacts
from tallystick.sources.torch_module.module import ledger_of_facts
from tallystick.sources.transformers_meta.process import ask
from tallystick.versions import OLDEST, is_too_old, require

# Of modules and parameters: 2,048 experts in each of 15 layers are some 215,000.
MOST_BUILT = 250_000


class Built(NamedTuple):
    """What transformers built from a config."""

    facts: ModuleFacts
    version: str  # of transformers
    config: Mapping[str, Any]  # of the model, with each key that transformers adds
    loaded: Mapping[str, str]  # the name in the model of each stored tensor
    language: frozenset[str] | None  # the names of the language part, where it was asked for


def ledger_by_transformers(
    model_type: str, values: Mapping[str, Any], overrides: Mapping[str, Any], *, source: str
) -> Ledger:
    """The ledger of what transformers builds from a config: of the class that it names, where its type has that one.

    Needs the extra ``hf``; runs no remote code.
    """
    classes, values = classes_of({**values, **overrides}), with_dtype(values)
    built = built_by_transformers(model_type, values, overrides, source=source, classes=classes)
    ledger = ledger_of_facts(built.facts, source=source)
    stated = ledger.model.positions or positions_in(values)
    model = replace(ledger.model, architecture=model_type, positions=stated)
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
    """The ledger of the language part alone of what transformers builds from a config."""
    classes, values = classes_of({**values, **overrides}), with_dtype(values)
    built = built_by_transformers(model_type, values, overrides, source=source, classes=classes, language=True)
    entries = tuple(entry for entry in ledger_of_facts(built.facts).rolled if entry.name in (built.language or ()))
    note = f"the language part alone of {built.facts.class_name}, which transformers built on the meta device"
    return Ledger(entries, source=source, kind="config", notes=(note,), model=ModelDescription(model_type))


def with_dtype(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """A config that says at its top the dtype that only a part of it states: transformers builds in that of the top."""
    found = dtype_in(values)
    return {**values, "dtype": found} if found and not (values.get("dtype") or values.get("torch_dtype")) else values


def is_known(model_type: object) -> bool:
    """Whether transformers is there, and knows a model type."""
    return isinstance(model_type, str) and _can_build() and bool(_ask("knows", model_type=model_type))


def has_class(model_type: str, name: str) -> bool:
    """Whether transformers is there, and has such a class for configs of a type."""
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
    """The model of a config, without weights: of the first of `classes` that takes such a config, or a language model.

    Args:
        model_type: that of the config.
        values: the config.
        overrides: keys to set over it.
        source: what the user named, for messages.
        classes: names of transformers' classes.
        stored: tensors of a checkpoint, each with what it is called unpacked: `loaded` says what the model calls them.
        language: whether the names of its language part are wanted.

    Raises:
        BadInput: where transformers is not there, does not know the type, or cannot build it.
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
    """The answer of `build`: in the process that builds, but for a type that the user's own code added to transformers here."""
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
            f"{model_type} would {refused} as it is built, which no config may make it do", code="unsafe"
        ) from None
    finally:
        logging.set_verbosity(verbosity)


def _can_build() -> bool:
    return _is_there() and not any(map(is_too_old, OLDEST))


def _is_there() -> bool:
    try:
        return all(map(find_spec, ("torch", "transformers")))
    except ValueError:  # a module in its place that has no spec
        return False
