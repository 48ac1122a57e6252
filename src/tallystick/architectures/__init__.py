"""Native model families: one file per `model_type`, imported on demand.

A file is found by its name, so adding a family needs no other edit. ``kit/`` holds the parts
that families share. A type that only renames another family is one line in ``aliases.py``.
``teaching.py`` alone registers several types: the models of a first course.
"""

from importlib import import_module
from importlib.util import find_spec

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
    from pkgutil import iter_modules

    files = {module.name for module in iter_modules(__path__) if not module.ispkg} - SHARED  # in a zip file too
    return sorted([*files, *ALIASES, *TEACHING])


def _is_known(model_type: str) -> bool:
    """Return whether a type is native, without listing the folder."""
    if model_type in ALIASES or model_type in TEACHING:
        return True
    if model_type in SHARED or "." in model_type or model_type.startswith("_"):
        return False
    file = find_spec(f"{__name__}.{model_type}")
    return file is not None and file.submodule_search_locations is None  # kit/ is a package


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
