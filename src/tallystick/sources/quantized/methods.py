"""What each quantiser stores for a matrix, and for which modules, as a config states it: the layouts that `elementwise` reads.

A config that leaves a size open gives no layout: a reader is told so, and the matrix counts in its dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tallystick.sources.quantized.excluded_modules import Patterns
from tallystick.sources.quantized.grouped_methods import compressed_tensors, modelopt
from tallystick.sources.quantized.layouts import (
    E4M3,
    Scheme,
    StoredPart,
    Unstated,
    awq,
    blocks_of_64,
    fp8,
    gptq,
    grouped,
    llm_int8,
    mlx,
    narrow_floats,
    tiles,
)
from tallystick.sources.quantized.packed_weight import is_size
from tallystick.sources.quantized.settings import Quantiser, bits_of, flat, group_of, kept, lists, part_of, size_of


def quantiser_of(told: Mapping[str, Any], dtype: str | None) -> Quantiser:
    """What a `quantization_config` says.

    Args:
        told: its keys.
        dtype: of the model, as its config states it: that of scales which are not narrower.

    Raises:
        Unstated: where it does not say what a weight takes.
    """
    method = _method(told)
    reader = _READERS.get(method)
    if reader is None:
        raise Unstated("its layout is not known from a config alone")
    return reader({**told, "quant_method": method}, dtype or _DTYPE.get(method, "bfloat16"))._replace(
        dtype=_DTYPE.get(method, "bfloat16")
    )


def _method(told: Mapping[str, Any]) -> str:
    """Who quantised, also where only its keys give it away."""
    stated = told.get("quant_method")
    if isinstance(stated, str) and not told.get("quant_algo"):
        return stated.lower().replace("_", "-")
    if told.get("quant_algo") or part_of(told, "producer").get("name") == "modelopt":
        return "modelopt"
    if told.get("load_in_4bit") or told.get("load_in_8bit"):
        return "bitsandbytes"
    return "mlx" if {"bits", "group_size"} <= told.keys() else ""


# -- what each says -----------------------------------------------------------------------------------


def _mxfp4(told: Mapping[str, Any], dtype: str) -> Quantiser:
    return Quantiser("MXFP4", [(None, narrow_floats(32, of="blocks"))], kept(told), experts=True)


def _fine_grained(told: Mapping[str, Any], dtype: str) -> Quantiser:
    """Transformers 5.23, FineGrainedFP8Config; `ignored_layers` is AutoFP8's, `expert_dtype` DeepSeek-V4's."""
    size, narrow = told.get("weight_block_size"), told.get("expert_dtype")
    if narrow not in (None, "fp8", "fp4"):
        raise Unstated(f"its experts are in {str(narrow)[:20]}")
    scale = "float8_e8m0fnu" if told.get("scale_fmt") == "ue8m0" else "float32"
    inputs = (StoredPart("input_scale", "float32", (1,)),) if told.get("activation_scheme") == "static" else ()
    tiled = fp8(tiles(size), scale, *inputs) if size is not None else fp8(lambda *_: (1,), "float32", *inputs)
    experts = (Patterns(["experts"]), narrow_floats(32, of="weight", scale=scale))
    left = kept(told, "modules_to_not_convert", "ignored_layers")
    return Quantiser("FP8", [*([experts] if narrow == "fp4" else []), (None, tiled)], left, head=lists(told))


def _fbgemm(told: Mapping[str, Any], dtype: str) -> Quantiser:
    scheme = fp8(lambda out, _: (out, 1))
    return Quantiser("FBGEMM FP8", [(None, scheme)], kept(told), head=lists(told))


def _bitsandbytes(told: Mapping[str, Any], dtype: str) -> Quantiser:
    if told.get("load_in_8bit") or told.get("_load_in_8bit"):
        scheme = Scheme("int8", llm_int8)
    elif told.get("load_in_4bit") or told.get("_load_in_4bit"):
        kind = told.get("bnb_4bit_quant_type", "fp4")
        if kind not in ("nf4", "fp4"):
            raise Unstated(f"bnb_4bit_quant_type is {str(kind)[:20]}")
        scheme = blocks_of_64(kind, nested=told.get("bnb_4bit_use_double_quant") is True)
    else:
        raise Unstated("it says neither load_in_4bit nor load_in_8bit")
    skipped = "llm_int8_skip_modules"
    return Quantiser("bitsandbytes", [(None, scheme)], kept(told, skipped), head=lists(told, skipped), linear=True)


def _of_gptq(told: Mapping[str, Any], dtype: str) -> Quantiser:
    """AutoGPTQ 0.7 and GPTQModel, whose `dynamic` gives modules settings of their own: ``-:`` leaves them out."""
    if told.get("checkpoint_format") not in (None, "gptq", "gptq_v2"):
        raise Unstated(f"its checkpoint_format is {str(told['checkpoint_format'])[:20]}")
    own, left = [], []
    for pattern, settings in part_of(told, "dynamic").items():
        if str(pattern).startswith("-:"):
            left.append(f"re:{pattern[2:]}")
        else:
            whole = {**told, **(settings if isinstance(settings, Mapping) else {})}
            own.append((Patterns([f"re:{str(pattern).removeprefix('+:')}"]), gptq(bits_of(whole), group_of(whole))))
    inside = told.get("modules_in_block_to_quantize")
    meant = Patterns(flat(inside)) if inside else None
    whole_left = kept({"kept": [*left, *flat(told.get("modules_to_not_convert") or [])]}, "kept")
    schemes = [*own, (meant, gptq(bits_of(told), group_of(told)))]
    return Quantiser("GPTQ", schemes, whole_left, head=told.get("lm_head") is True, blocks=True, linear=True)


def _of_awq(told: Mapping[str, Any], dtype: str) -> Quantiser:
    version = str(told.get("version") or "gemm").lower()
    if version != "gemm":
        raise Unstated(f"its version is {version[:20]}")
    return Quantiser("AWQ", [(None, awq(bits_of(told), group_of(told)))], kept(told), linear=True)


def _torchao(told: Mapping[str, Any], dtype: str) -> Quantiser:
    """A type and its settings, for all modules; some older ones are words (torchao 0.18)."""
    stated = told.get("quant_type")
    default = stated.get("default", stated) if isinstance(stated, Mapping) else {"_type": stated}
    kind = (
        str(default.get("_type") if isinstance(default, Mapping) else "")
        .lower()
        .replace("_", "")
        .removesuffix("config")
    )
    data = part_of(default, "_data") if isinstance(default, Mapping) else {}
    group = data.get("group_size", part_of(told, "quant_type_kwargs").get("group_size", 128))
    if kind in ("int8weightonly", "int8dynamicactivationint8weight"):
        scheme = Scheme(
            "int8",
            lambda out, inputs: [
                StoredPart("weight", "int8", (out, inputs)),
                StoredPart("weight_scale", "float32", (out, 1)),
                StoredPart("weight_zero_point", "int8", (out, 1)),
            ],
        )
    elif kind == "int4weightonly" and is_size(group):
        scheme = grouped(4, group, dtype, "weight_qdata", "weight_scale", "weight_zero_point")
    elif kind in ("float8weightonly", "float8dynamicactivationfloat8weight"):
        rows = "perrow" in str(data.get("granularity")).lower() or kind == "float8weightonly"
        scheme = fp8((lambda out, _: (out, 1)) if rows else (lambda *_: (1, 1)))
    else:
        raise Unstated(f"its quant_type is {kind[:40]}")
    return Quantiser("torchao", [(None, scheme)], kept(told), head=lists(told))


def _of_hqq(told: Mapping[str, Any], dtype: str) -> Quantiser:
    how = part_of(told, "quant_config")
    own = [name for name, settings in how.items() if name != "weight_quant_params" and "nbits" in part_of(how, name)]
    whole = part_of(how, "weight_quant_params") or (how if "nbits" in how else {})
    schemes: list[tuple[Patterns | None, Scheme]] = [
        (Patterns([name]), _in_hqq(part_of(how, name), dtype)) for name in own if "nbits" in part_of(how, name)
    ]
    if whole:
        schemes.append((None, _in_hqq(whole, dtype)))
    if not schemes:
        raise Unstated("it says no nbits")
    skipped = told.get("skip_modules") or []
    return Quantiser("HQQ", schemes, kept({"kept": ["lm_head", *flat(skipped)]}, "kept"), linear=True)


def _in_hqq(settings: Mapping[str, Any], dtype: str) -> Scheme:
    bits, group = settings.get("nbits"), settings.get("group_size", 64)
    if bits not in (1, 2, 3, 4, 8) or not (group is None or is_size(group)):
        raise Unstated(f"nbits is {str(bits)[:20]} and group_size {str(group)[:20]}")
    return grouped(bits, group, dtype, "W_q", "scale", "zero")


def _quanto(told: Mapping[str, Any], dtype: str) -> Quantiser:
    """optimum-quanto 0.2.7: a scale for each row in 8 bits, groups of 128 with a shift below."""
    word = told.get("weights")
    if word in ("int8", "float8"):
        kind = "int8" if word == "int8" else E4M3
        scheme = Scheme(
            kind,
            lambda out, inputs: [
                StoredPart("weight._data", kind, (out, inputs)),
                StoredPart("weight._scale", dtype, (out, 1)),
            ],
        )
    elif word in ("int4", "int2"):
        scheme = grouped(int(word[-1]), 128, dtype, "weight._data._data", "weight._scale", "weight._shift")
    else:
        raise Unstated(f"weights is {str(word)[:20]}")
    return Quantiser("quanto", [(None, scheme)], kept(told), head=lists(told), linear=True)


def _bitnet(told: Mapping[str, Any], dtype: str) -> Quantiser:
    if told.get("quantization_mode") == "online":
        raise Unstated("its weights are stored as they are, and quantised as they are used")
    scheme = Scheme(
        "int2",
        lambda out, inputs: [
            StoredPart("weight", "uint8", (-(-out // 4), inputs)),
            StoredPart("weight_scale", dtype, (1,)),
        ],
    )
    return Quantiser("BitNet", [(None, scheme)], kept(told), head=lists(told), linear=True)


def _eetq(told: Mapping[str, Any], dtype: str) -> Quantiser:
    scheme = Scheme(
        "int8",
        lambda out, inputs: [
            StoredPart("weight", "int8", (inputs, out)),
            StoredPart("weight_scales", "float16", (out,)),
        ],
    )
    return Quantiser("EETQ", [(None, scheme)], kept(told), head=lists(told), linear=True)


def _auto_round(told: Mapping[str, Any], dtype: str) -> Quantiser:
    """AutoRound, in the words of GPTQ or AWQ; `extra_config` gives modules other bits, 16 of which are none."""
    form, scheme = str(told.get("packing_format")), gptq(bits_of(told), group_of(told), ordered=False)
    if "awq" in form:
        scheme = awq(bits_of(told), group_of(told))
    elif "gptq" not in form:
        raise Unstated(f"its packing_format is {form[:30]}")
    left = [
        name for name in part_of(told, "extra_config") if part_of(part_of(told, "extra_config"), name).get("bits") == 16
    ]
    return Quantiser("AutoRound", [(None, scheme)], kept({"kept": left}, "kept"), blocks=True, linear=True)


def _in_words(told: Mapping[str, Any], dtype: str) -> Quantiser:
    """MLX, with settings of their own for single modules and false for those that are left; and transformers' Metal."""
    metal = told["quant_method"] == "metal"
    own = [(name, one) for name, one in told.items() if isinstance(one, Mapping) and "bits" in one]
    whole = [name for name, one in told.items() if one is False]
    schemes: list[tuple[Patterns | None, Scheme]] = [(Patterns([name]), _in_mlx(one, dtype)) for name, one in own]
    schemes.append((None, _in_mlx(told, dtype)))
    left = kept(told) if metal else kept({"kept": whole}, "kept")
    return Quantiser("Metal" if metal else "MLX", schemes, left, head=not metal or lists(told), everything=not metal)


_FLOATS_OF_MLX = {"mxfp4": (4, 32), "nvfp4": (4, 16), "mxfp8": (8, 32)}


def _in_mlx(told: Mapping[str, Any], dtype: str) -> Scheme:
    mode = told.get("mode", "affine")
    if mode == "affine":
        return mlx(bits_of(told), size_of(told), dtype)
    if mode not in tuple(_FLOATS_OF_MLX):
        raise Unstated(f"its mode is {str(mode)[:20]}")
    return mlx(*_FLOATS_OF_MLX[mode], "uint8", biases=False)


_READERS: dict[str, Callable[[Mapping[str, Any], str], Quantiser]] = {
    "mxfp4": _mxfp4, "fp8": _fine_grained, "fbgemm-fp8": _fbgemm, "bitsandbytes": _bitsandbytes, "gptq": _of_gptq,
    "awq": _of_awq, "compressed-tensors": compressed_tensors, "modelopt": modelopt, "torchao": _torchao, "hqq": _of_hqq,
    "quanto": _quanto, "bitnet": _bitnet, "eetq": _eetq, "auto-round": _auto_round, "mlx": _in_words, "metal": _in_words,
}  # fmt: skip
# Of what is not quantised, where the config states none: that of GPTQ's and AWQ's kernels; of all others bfloat16.
_DTYPE = {"gptq": "float16", "awq": "float16", "bitsandbytes": "float16"}
