"""The pages of the architectures: a table of every causal language model type of transformers, and
a page for each family with the types' options.

python docs/site/architectures.py docs/architectures.md
"""

from __future__ import annotations

import sys
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

import tallystick
from tallystick import Ledger, architectures
from tallystick.architectures.kit.variants import DECODER
from tallystick.core.config import REQUIRED, Key
from tallystick.core.registry import Architecture
from tallystick.sources.configs.classes import variants_of

TOP = """\
---
search:
  boost: 0.5
---

# Architectures

Which model types are counted natively, and how large is the default config of each?

`AutoModelForCausalLM` of transformers {version} has {all} model types. **{native}** are native: counted from their config in milliseconds, without
torch. The tests compare each with the model that transformers builds on the meta device: names, shapes, ties and buffers, for the default config
and for configs drawn over all options. transformers builds the others on the meta device (`pip install 'tallystick[hf]'`).

`make architectures` writes this page. A new type is one file: [Adding an architecture](../CONTRIBUTING.md#adding-an-architecture).

## Native

*Parameters*: of the default config, which names only its type; or the key that it lacks. *Other classes*: their endings; each is counted if a
config names it in `architectures`. On the site, a family's page lists each type's options: the config keys that change a tensor.

| model type | class | other classes | family | parameters |
| --- | --- | --- | --- | ---: |
"""

ELSEWHERE = """
## Native, and not in transformers

| model type | family | parameters |
| --- | --- | ---: |
"""

OTHERS = """
## Built by transformers

| model type | why |
| --- | --- |
"""

FAMILY = """\
---
search:
  boost: 0.5
---

# {title}

*Options* are the config keys that change a tensor, with their defaults. A key without a default must be stated. Next to each class are the endings
of the type's other classes, and the parameters of the default config. [All architectures](../architectures.md)
"""

# Families, most telling first: a type belongs to the first that fits its keys and roles.
FAMILIES = {
    "multimodal": "Text with images, video or sound",
    "encoders": "BERT and other encoders, as decoders",
    "encoder-decoders": "BART and other decoders of encoder–decoders",
    "state-spaces": "State spaces, scans and linear attention",
    "latent-attention": "DeepSeek and other latent attention",
    "experts": "Mixtures of experts",
    "gpt": "GPT and other dense decoders with learned positions",
    "llama": "Llama and other dense decoders",
}
TOWERS = {"text_config", "vision_config", "audio_config", "thinker_config"}

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


def family_pages(index: str) -> dict[str, str]:
    """The page of each family, in Markdown, by its name, from the rows of the page of all."""
    pages = {name: [FAMILY.format(title=title)] for name, title in FAMILIES.items()}
    for line in index.splitlines():
        name, *told = (cell.strip("` ") for cell in line.strip("| ").split(" | "))
        if len(told) > 1 and told[-2] in FAMILIES and (found := architectures.find(name)):
            pages[told[-2]].append(_section(found, told[:-2], told[-1]))
    return {name: "\n".join(sections) for name, sections in pages.items()}


def family_of(architecture: Architecture) -> str:
    """The family that an architecture belongs to."""
    keys = set(architecture.keys)
    roles = _roles(architecture.name)
    fits = {
        "multimodal": TOWERS & {key.partition(".")[0] for key in keys},
        "encoders": "is_decoder" in keys,
        "encoder-decoders": {"decoder_layers", "num_decoder_layers"} & keys,
        "state-spaces": {"ssm", "conv"} & roles,
        "latent-attention": "kv_lora_rank" in keys,
        "experts": any("expert" in key for key in keys),
        "gpt": "position_embedding" in roles,
        "llama": True,
    }
    return next(name for name, fit in fits.items() if fit)


def _roles(name: str) -> set[str]:
    ledger = _default_ledger(name)
    return (
        {role for role, parameters in ledger.by("role").items() if parameters} if isinstance(ledger, Ledger) else set()
    )


def _section(architecture: Architecture, classes: list[str], count: str) -> str:
    """A type on its family's page; its options as HTML, which takes no time to render."""
    options = "".join(f"{escape(key + _default(value))}\n" for key, value in architecture.keys.items())
    counted = f"{count} parameters" if count[0].isdigit() else count
    says = " · ".join([*(f"`{name}`" for name in classes[:1]), *filter(None, classes[1:]), counted])
    folded = f"<details><summary>{len(architecture.keys)} options</summary><pre><code>{options}</code></pre></details>"
    return f"## {architecture.name}\n\n{says}\n\n{folded}\n"


def _lines(rows: list[str]) -> list[str]:
    return [row + "\n" for row in rows]


def _row(architecture: Architecture, *more: str) -> str:
    return f"| {' | '.join([f'`{architecture.name}`', *more, family_of(architecture), _count(architecture)])} |"


def _others(architecture: Architecture) -> str:
    """How the names of the further classes end, those that transformers has."""
    import transformers

    endings = DECODER if architecture.variants is None else architecture.variants
    there = set(transformers.__all__)  # without importing the module of each class
    return ", ".join(ending for ending, name in zip(endings, variants_of(architecture), strict=True) if name in there)


def _default(value: Any) -> str:
    if value is REQUIRED:
        return ""
    default = value.default if isinstance(value, Key) else value
    words = {True: "true", False: "false"}
    return f"={'null' if default is None else words[default] if isinstance(default, bool) else default}"


def _count(architecture: Architecture) -> str:
    """Parameters of the default config, or what it lacks."""
    ledger = _default_ledger(architecture.name)
    return f"{ledger.total:,}" if isinstance(ledger, Ledger) else ledger


@cache
def _default_ledger(name: str) -> Ledger | str:
    """The ledger of the default config, or what it lacks."""
    try:
        return tallystick.count({"model_type": name})
    except tallystick.BadInput as error:
        return str(error).rpartition("the dictionary: ")[2]


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(architectures_page(), encoding="utf-8")
