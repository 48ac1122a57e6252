"""The families that tallystick knows, one file each, named after the config's ``model_type``.

A file is imported when its type is asked for, and found by its name: adding one needs no other edit.
``kit/`` holds what several families share; a type that is only another name of a family is a line in
``aliases.py``. One file alone holds several: the models of a first course, which build on one another.
"""

from importlib import import_module
from pathlib import Path

from tallystick.architectures.aliases import ALIASES
from tallystick.core.registry import REGISTRY, Architecture, register_alias

# Files of this folder that are no type of their own.
SHARED = {"__init__", "aliases", "teaching"}

# The types that architectures/teaching.py registers.
TEACHING = (
    "bare_bones_lm",
    "mlp",
    "feed_forward_lm",
    "single_head_attention",
    "multi_head_attention",
    "transformer_layer",
    "transformer_lm",
    "rotary_transformer_lm",
)


def known() -> list[str]:
    """Every native model type, in alphabetical order."""
    files = {path.stem for folder in __path__ for path in Path(folder).glob("*.py")} - SHARED
    return sorted([*files, *ALIASES, *TEACHING])


def find(model_type: str) -> Architecture | None:
    """The native family of a model type, or None."""
    if model_type not in REGISTRY:
        if model_type not in known():  # asked first: a model_type is a file's word, not a module to import
            return None
        if model_type in ALIASES:
            family = find(ALIASES[model_type].like)
            assert family  # noqa: S101  # an alias names a family that is here
            return register_alias(model_type, ALIASES[model_type], family)
        import_module(f"{__name__}.{'teaching' if model_type in TEACHING else model_type}")
    return REGISTRY[model_type]
