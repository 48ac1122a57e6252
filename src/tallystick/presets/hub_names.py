"""Find the preset of a name on the hub: ``Qwen/Qwen3-8B-FP8`` is ``qwen3-8b`` in fp8."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from tallystick.presets import PRESETS

# Words of a repository's name that change no tensor of its config.
_TRAINED = re.compile(r"-(?:instruct|it|chat|hf|base|pt|thinking|distill|latest|\d{4}|v0\.[12])(?=-|$)")
_PACKED = {
    "bitsandbytes": re.compile(r"-(?:unsloth-)?bnb-4bit(?=-|$)"),
    "fp8": re.compile(r"-fp8(?:-dynamic|-block)?(?=-|$)"),
    "awq": re.compile(r"-awq(?:-int4)?(?=-|$)"),
    "gptq": re.compile(r"-gptq(?:-int4)?(?=-|$)|-quantized\.w4a16|-w4a16(?=-|$)"),
    "int8": re.compile(r"-quantized\.w8a8|-w8a8(?=-|$)"),
}
# A GGUF's name: Qwen3-8B-Q4_K_M.gguf, Qwen3-8B-UD-Q4_K_XL-00001-of-00002.gguf, Qwen3-8B-GGUF.
_GGUF = re.compile(r"(?:-\d{5}-of-\d{5})?\.gguf$|-gguf$")
_FILE_TYPE = re.compile(r"[-.](?:ud-)?((?:iq|q)\d(?:_\d|_k)?(?:_[a-z]{1,3})?|f16|f32|bf16|mxfp4)$")
# Names of models with the tensors of another: distilled from, or trained on from it.
_FAMILIES = (
    (re.compile(r"^meta-llama-"), "llama-"),
    (re.compile(r"^mixtral-8x7b-v0\.1"), "mixtral-8x7b"),
    (re.compile(r"^deepseek-r1-distill-llama-8b"), "llama-3.1-8b"),
    (re.compile(r"^deepseek-r1-distill-llama-70b"), "llama-3.3-70b"),
    (re.compile(r"^deepseek-r1-distill-qwen-(?=7b|14b|32b)"), "qwen2.5-"),
    (re.compile(r"^qwen2-(?=7b|72b)"), "qwen2.5-"),
    (re.compile(r"^qwen2\.5-coder-"), "qwen2.5-"),
    (re.compile(r"^qwen2\.5-math-(?=7b|72b)"), "qwen2.5-"),
    (re.compile(r"^(qwen2\.5-(?:7b|14b)-instruct)-1m"), r"\1"),
    (re.compile(r"^qwq-32b(?:-preview)?"), "qwen2.5-32b"),
)
# What the configs of such names state otherwise than their presets: max_position_embeddings by the
# model cards of Qwen2 and Qwen2.5 and litgpt's config.py; Mistral's second version has no window.
_OTHERWISE: tuple[tuple[re.Pattern[str], dict[str, Any]], ...] = (
    (re.compile(r"^qwen2\.5-(?:7|14)b-instruct-1m"), {"max_position_embeddings": 1_010_000}),
    (re.compile(r"^qwen2(?:\.5-coder-.*|(?:\.5)?-\d.*-instruct)"), {"max_position_embeddings": 32_768}),
    (re.compile(r"^qwq-32b-preview"), {"max_position_embeddings": 32_768}),
    (re.compile(r"^qwen2\.5-math"), {"max_position_embeddings": 4096}),
    (re.compile(r"^qwen3-.*-2507"), {"max_position_embeddings": 262_144}),
    (re.compile(r"^mistral-7b-(?:instruct-)?v0\.2"), {"sliding_window": None}),
)


class Known(NamedTuple):
    """A preset with the tensors of a model on the hub."""

    preset: str
    quantization: str  # "" if the name states none
    settings: dict[str, Any]  # config keys that differ from the preset's


def preset_of(repository: str) -> Known | None:
    """Return the preset of a name on the hub, and what the name states besides.

    >>> preset_of("Qwen/Qwen3-8B-FP8")
    Known(preset='qwen3-8b', quantization='fp8', settings={})
    >>> preset_of("Qwen/Qwen2.5-7B-Instruct").settings
    {'max_position_embeddings': 32768}
    """
    name = re.split(r"[/\\]", repository)[-1].lower()  # of Windows too
    packed = ""
    if _GGUF.search(name):
        name = _GGUF.sub("", name)
        if form := _FILE_TYPE.search(name):
            name, packed = name[: form.start()], re.sub(r"_xl$", "_m", form[1])  # Unsloth's mixes are near
    for word, pattern in _PACKED.items():
        if pattern.search(name):
            name, packed = pattern.sub("", name), word
    settings = next((stated for pattern, stated in _OTHERWISE if pattern.search(name)), {})
    for old, new in _FAMILIES:
        name = old.sub(new, name)
    bare = _TRAINED.sub("", name)
    for found in (name, bare, bare.replace("_", "-")):
        if found in PRESETS:
            return Known(found, packed, settings)
    return None
