"""Native model families: one file per `model_type`, imported on demand.

A file is found by its name, so adding a family needs no other edit. ``kit/`` holds the parts
that families share. A type that only renames another family is one line in ``aliases.py``.
``teaching.py`` alone registers several types: the models of a first course.
"""

from importlib import import_module
from pkgutil import iter_modules

from tallystick.architectures.aliases import ALIASES
from tallystick.core.registry import REGISTRY, Architecture, register_alias

# Files of this folder that are not named after a model type.
SHARED = {"aliases", "teaching"}

# The model types that architectures/teaching.py registers.
TEACHING = (
    "embedding",
    "bare_bones_lm",
    "mlp",
    "feed_forward_lm",
    "position_wise_lm",
    "single_head_attention",
    "multi_head_attention",
    "transformer_layer",
    "transformer_lm",
    "rotary_transformer_lm",
)


def known() -> list[str]:
    """Return every native model type, in alphabetical order."""
    files = {module.name for module in iter_modules(__path__) if not module.ispkg} - SHARED  # in a zip file too
    return sorted([*files, *ALIASES, *TEACHING])


_seen: set[str] = set()  # to list the folder takes a millisecond


def _is_known(model_type: str) -> bool:
    if model_type not in _seen:
        _seen.update(known())
    return model_type in _seen


def find(model_type: str) -> Architecture | None:
    """Return the native family of a model type, or None if there is none."""
    if model_type not in REGISTRY:
        if not _is_known(model_type):  # check before importing: the string comes from a config file
            return None
        if model_type in ALIASES:
            family = find(ALIASES[model_type].like)
            assert family  # noqa: S101  # an alias names a registered family
            return register_alias(model_type, ALIASES[model_type], family)
        import_module(f"{__name__}.{'teaching' if model_type in TEACHING else model_type}")
    return REGISTRY[model_type]
