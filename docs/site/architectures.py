"""The page of the architectures: every causal language model type of transformers, who counts it,
its options, its default's count.

python docs/site/architectures.py docs/architectures.md
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import tallystick
from tallystick import architectures
from tallystick.architectures.kit.variants import DECODER
from tallystick.core.config import REQUIRED, Key
from tallystick.core.registry import Architecture
from tallystick.sources.configs.classes import variants_of

TOP = """\
# Architectures

Every model type that `AutoModelForCausalLM` of transformers {version} maps to a class: {all}. **{native}** are native: counted from their config in
milliseconds, without torch. Each is compared with the model that transformers builds on the meta device, name by name, shape by shape, tie by
tie and buffer by buffer, for its default config and for configs that are drawn over all of its options. The others are built by transformers
on the meta device (`pip install 'tallystick[hf]'`), and counted from what it builds.

`make architectures` writes this page. A new type is one file: [Adding an architecture](../CONTRIBUTING.md#adding-an-architecture).

## Native

What a default config, which says nothing but its type, gives, and the options: each config key that changes a tensor, with its default. A key
without one must be stated. Next to the causal language model are, by the ends of their names, the other classes that are counted where a config
names them in `architectures`.

| model type | class | others | parameters | options |
| --- | --- | --- | --- | --- |
"""

ELSEWHERE = """
## Native, and not in transformers

| model type | parameters | options |
| --- | --- | --- |
"""

OTHERS = """
## Built by transformers

| model type | why |
| --- | --- |
"""

# Why a type is left to transformers.
_WHOLE = "its language model reads the decoder's keys at the top of the config, where no file has them; what transformers builds is the whole model"
_NO_DEFAULT = "its default config makes no model in transformers 5.23"
WHY = {
    "gemma3n": "its eyes are of another library (timm); its language model, `gemma3n_text`, is native: `--part text`",
    "gemma4_assistant": _NO_DEFAULT,
    "gemma4_unified_assistant": _NO_DEFAULT,
    "musicgen": _WHOLE,
    "musicgen_melody": _WHOLE,
    "qwen4_exp": _NO_DEFAULT,
    "qwen4_exp_text": _NO_DEFAULT,
}


def architectures_page() -> str:
    """The page, in Markdown."""
    import transformers
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    types = sorted(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)
    families = {name: architectures.find(name) for name in architectures.known()}
    native = [family for name in types if (family := families.get(name))]
    top = TOP.format(version=transformers.__version__, all=len(types), native=len(native))
    rows = [_row(family, family.class_name, _others(family)) for family in native]
    elsewhere = [_row(family) for name, family in families.items() if family and name not in types]
    others = [f"| `{name}` | {WHY[name]} |" for name in types if name not in families]
    lines = [top, *_lines(rows), ELSEWHERE, *_lines(elsewhere), OTHERS if others else "", *_lines(others)]
    return "".join(lines)


def _lines(rows: list[str]) -> list[str]:
    return [row + "\n" for row in rows]


def _row(family: Architecture, *more: str) -> str:
    options = ", ".join(f"`{key}{_default(value)}`" for key, value in family.keys.items())
    return f"| {' | '.join([f'`{family.name}`', *more, _count(family), options])} |"


def _others(family: Architecture) -> str:
    """How the names of the further classes end, those that transformers has."""
    import transformers

    endings = DECODER if family.variants is None else family.variants
    named = zip(endings, variants_of(family), strict=True)
    return ", ".join(ending for ending, name in named if hasattr(transformers, name))


def _default(value: Any) -> str:
    if value is REQUIRED:
        return ""
    default = value.default if isinstance(value, Key) else value
    words = {True: "true", False: "false"}
    return f"={'null' if default is None else words[default] if isinstance(default, bool) else default}"


def _count(family: Architecture) -> str:
    """Parameters of the default config, or what it lacks."""
    try:
        return f"{tallystick.count({'model_type': family.name}).total:,}"
    except tallystick.BadInput as error:
        return str(error).partition(": ")[2]


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(architectures_page(), encoding="utf-8")
