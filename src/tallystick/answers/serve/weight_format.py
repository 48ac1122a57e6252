"""The number format in which an engine holds the weights, and the dtype of its activations."""

from __future__ import annotations

from tallystick.answers.memory.gguf_rules import FILE_TYPES
from tallystick.answers.memory.model_states import TRAINED, is_packed
from tallystick.answers.memory.number_formats import PACKED, format_named
from tallystick.answers.serve.options import Options
from tallystick.core.dtypes import BITS
from tallystick.core.ledger import Ledger
from tallystick.errors import BadInput, nearest, quoted
from tallystick.runtimes.engines import Engine

# Names of --quantization, and the number format of each. None: as the weights are stored.
QUANTIZATIONS: dict[str, str | None] = {
    "fp8": "fp8", "awq": "awq", "awq_marlin": "awq", "gptq": "gptq-4bit-128g", "gptq_marlin": "gptq-4bit-128g",
    "bitsandbytes": "nf4",
    "int8": "int8", "w8a8_int8": "int8", "w8a8_fp8": "fp8", "compressed-tensors": None, "mxfp4": None,
    "modelopt": None, "modelopt_fp4": None, "auto-round": None, "gguf": None,
}  # fmt: skip


def weight_format(ledger: Ledger, engine: Engine, asked: Options) -> tuple[str | None, str]:
    """Return the number format of the weights, and the dtype of activations.

    Args:
        ledger: the model.
        engine: the engine that loads it.
        asked: the options, of which `dtype` and `quantization` count.

    Returns:
        The number format, None for as stored; and the dtype.

    Raises:
        BadInput: for an unknown quantization or file type.
    """
    own = max(ledger.by("dtype").items(), key=lambda item: item[1], default=("bfloat16", 0))[0]
    plain = own if own in TRAINED else next((one for one in ledger.by("dtype") if one in TRAINED), "bfloat16")
    given = None if asked.dtype in (None, "auto") else format_named(str(asked.dtype))
    computed = given if given in TRAINED else "bfloat16" if plain == "float32" else plain
    word = asked.quantization
    if engine.name == "llama.cpp":
        return _gguf(ledger, asked, plain)
    if word is not None and word not in QUANTIZATIONS:
        raise BadInput(
            f"quantization is {quoted(word)}, expected one of {', '.join(QUANTIZATIONS)}", code="unknown-name"
        )
    packed, form = is_packed(ledger), None if word is None else QUANTIZATIONS[word]
    narrower = form is not None and not ledger.filed and PACKED[form].bits < BITS.get(own, 0)
    if form is not None and (not packed or narrower):
        return form, computed
    return (None if packed or computed == own else computed), computed


def _gguf(ledger: Ledger, asked: Options, plain: str) -> tuple[str | None, str]:
    """Return the file type of a GGUF: as named, as the file has it, or the model's 16 bits."""
    word = asked.quantization or (None if asked.dtype in (None, "auto") else asked.dtype)
    named = format_named(word or plain)
    if word == "mxfp4":  # so are files of MXFP4 experts called, whose other matrices are q8_0
        named = "mxfp4_moe"
    if ledger.filed or (is_packed(ledger) and named not in FILE_TYPES):
        return None, "float16"
    if named not in FILE_TYPES and named not in TRAINED:
        raise BadInput(
            f"{quoted(word or plain)} is not a file type of llama.cpp{nearest(named, FILE_TYPES)}: give one such as f16 or"
            " q4_k_m; `tallystick dtypes` lists them",
            code="unknown-name",
        )
    return named, "float16"
