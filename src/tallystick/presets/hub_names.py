"""Find the preset of a name on the hub: ``Qwen/Qwen3-8B-FP8`` is ``qwen3-8b`` in fp8."""

from __future__ import annotations

import re

from tallystick.presets import PRESETS

# Words of a repository's name that change no tensor of its config.
_TRAINED = re.compile(r"-(?:instruct|it|chat|hf|base|pt|thinking|distill|latest|\d{4}|v0\.[12])(?=-|$)")
_PACKED = {
    "fp8": re.compile(r"-fp8(?:-dynamic|-block)?(?=-|$)"),
    "awq": re.compile(r"-awq(?:-int4)?(?=-|$)"),
    "gptq": re.compile(r"-gptq(?:-int4)?(?=-|$)|-quantized\.w4a16|-w4a16(?=-|$)"),
    "int8": re.compile(r"-quantized\.w8a8|-w8a8(?=-|$)"),
}
# A GGUF's name: Qwen3-8B-Q4_K_M.gguf, Qwen3-8B-UD-Q4_K_XL-00001-of-00002.gguf, Qwen3-8B-GGUF.
_GGUF = re.compile(r"(?:-\d{5}-of-\d{5})?\.gguf$|-gguf$")
_FILE_TYPE = re.compile(r"[-.](?:ud-)?((?:iq|q)\d(?:_\d|_k)?(?:_[a-z]{1,3})?|f16|f32|bf16|mxfp4)$")
_FAMILIES = (("meta-llama-", "llama-"), ("mixtral-8x7b-v0.1", "mixtral-8x7b"))


def preset_of(repository: str) -> tuple[str, str] | None:
    """Return the preset of a name on the hub, and the quantisation that the name states.

    >>> preset_of("Qwen/Qwen3-8B-FP8"), preset_of("meta-llama/Meta-Llama-3.1-8B-Instruct")
    (('qwen3-8b', 'fp8'), ('llama-3.1-8b', ''))
    """
    name = repository.rpartition("/")[2].lower()
    packed = ""
    if _GGUF.search(name):
        name = _GGUF.sub("", name)
        if form := _FILE_TYPE.search(name):
            name, packed = name[: form.start()], re.sub(r"_xl$", "_m", form[1])  # Unsloth's mixes are near
    for word, pattern in _PACKED.items():
        if pattern.search(name):
            name, packed = pattern.sub("", name), word
    for old, new in _FAMILIES:
        name = name.replace(old, new)
    bare = _TRAINED.sub("", name)
    for found in (name, bare, bare.replace("_", "-")):
        if found in PRESETS:
            return found, packed
    return None
