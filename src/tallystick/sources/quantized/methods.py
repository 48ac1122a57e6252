"""Read each quantisation method's config: the matrix layout and the affected modules.

If a config leaves a size open, there is no layout: a note reports it, and the matrix counts in its
dtype.
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


def quantiser_of(quantization: Mapping[str, Any], dtype: str | None) -> Quantiser:
    """Return the quantiser that a `quantization_config` describes.

    Args:
        quantization: the keys of the `quantization_config`.
        dtype: the model's dtype as its config states it; scales that are not narrower have it.

    Raises:
        Unstated: if the config does not determine a weight's bytes.
    """
    method = _method(quantization)
    reader = _READERS.get(method)
    if reader is None:
        raise Unstated("its layout is unknown without the weights")
    return reader({**quantization, "quant_method": method}, dtype or _DTYPE.get(method, "bfloat16"))._replace(
        dtype=_DTYPE.get(method, "bfloat16")
    )


def _method(config: Mapping[str, Any]) -> str:
    """Return the quantisation method, also if only the config's keys imply it."""
    stated = config.get("quant_method")
    if isinstance(stated, str) and not config.get("quant_algo"):
        return stated.lower().replace("_", "-")
    if config.get("quant_algo") or part_of(config, "producer").get("name") == "modelopt":
        return "modelopt"
    if config.get("load_in_4bit") or config.get("load_in_8bit"):
        return "bitsandbytes"
    return "mlx" if {"bits", "group_size"} <= config.keys() else ""


# -- the methods ----------------------------------------------------------------------------------


def _mxfp4(config: Mapping[str, Any], dtype: str) -> Quantiser:
    return Quantiser("MXFP4", [(None, narrow_floats(32, of="blocks"))], kept(config), experts=True)


def _fine_grained(config: Mapping[str, Any], dtype: str) -> Quantiser:
    """Read transformers 5.23's FineGrainedFP8Config, with AutoFP8's and DeepSeek-V4's keys.

    `ignored_layers` is AutoFP8's key, `expert_dtype` DeepSeek-V4's.
    """
    size, narrow = config.get("weight_block_size"), config.get("expert_dtype")
    if narrow not in (None, "fp8", "fp4"):
        raise Unstated(f"its experts are in {str(narrow)[:20]}")
    scale = "float8_e8m0fnu" if config.get("scale_fmt") == "ue8m0" else "float32"
    inputs = (StoredPart("input_scale", "float32", (1,)),) if config.get("activation_scheme") == "static" else ()
    tiled = fp8(tiles(size), scale, *inputs) if size is not None else fp8(lambda *_: (1,), "float32", *inputs)
    experts = (Patterns(["experts"]), narrow_floats(32, of="weight", scale=scale))
    left = kept(config, "modules_to_not_convert", "ignored_layers")
    return Quantiser("FP8", [*([experts] if narrow == "fp4" else []), (None, tiled)], left, head=lists(config))


def _fbgemm(config: Mapping[str, Any], dtype: str) -> Quantiser:
    scheme = fp8(lambda out, _: (out, 1))
    return Quantiser("FBGEMM FP8", [(None, scheme)], kept(config), head=lists(config))


def _bitsandbytes(config: Mapping[str, Any], dtype: str) -> Quantiser:
    if config.get("load_in_8bit") or config.get("_load_in_8bit"):
        scheme = Scheme("int8", llm_int8)
    elif config.get("load_in_4bit") or config.get("_load_in_4bit"):
        kind = config.get("bnb_4bit_quant_type", "fp4")
        if kind not in ("nf4", "fp4"):
            raise Unstated(f"bnb_4bit_quant_type is {str(kind)[:20]}")
        scheme = blocks_of_64(kind, nested=config.get("bnb_4bit_use_double_quant") is True)
    else:
        raise Unstated("it sets neither load_in_4bit nor load_in_8bit")
    skipped = "llm_int8_skip_modules"
    return Quantiser("bitsandbytes", [(None, scheme)], kept(config, skipped), head=lists(config, skipped), linear=True)


def _of_gptq(config: Mapping[str, Any], dtype: str) -> Quantiser:
    """Read AutoGPTQ 0.7 or GPTQModel; `dynamic` sets single modules, and ``-:`` excludes them."""
    if config.get("checkpoint_format") not in (None, "gptq", "gptq_v2"):
        raise Unstated(f"its checkpoint_format is {str(config['checkpoint_format'])[:20]}")
    own, left = [], []
    for pattern, settings in part_of(config, "dynamic").items():
        if str(pattern).startswith("-:"):
            left.append(f"re:{pattern[2:]}")
        else:
            whole = {**config, **(settings if isinstance(settings, Mapping) else {})}
            own.append((Patterns([f"re:{str(pattern).removeprefix('+:')}"]), gptq(bits_of(whole), group_of(whole))))
    inside = config.get("modules_in_block_to_quantize")
    meant = Patterns(flat(inside)) if inside else None
    whole_left = kept({"kept": [*left, *flat(config.get("modules_to_not_convert") or [])]}, "kept")
    schemes = [*own, (meant, gptq(bits_of(config), group_of(config)))]
    return Quantiser("GPTQ", schemes, whole_left, head=config.get("lm_head") is True, blocks=True, linear=True)


def _of_awq(config: Mapping[str, Any], dtype: str) -> Quantiser:
    version = str(config.get("version") or "gemm").lower()
    if version != "gemm":
        raise Unstated(f"its version is {version[:20]}")
    return Quantiser("AWQ", [(None, awq(bits_of(config), group_of(config)))], kept(config), linear=True)


def _torchao(config: Mapping[str, Any], dtype: str) -> Quantiser:
    """Read torchao 0.18: a type and its settings for all modules; some older types are strings."""
    stated = config.get("quant_type")
    default = stated.get("default", stated) if isinstance(stated, Mapping) else {"_type": stated}
    kind = (
        str(default.get("_type") if isinstance(default, Mapping) else "")
        .lower()
        .replace("_", "")
        .removesuffix("config")
    )
    data = part_of(default, "_data") if isinstance(default, Mapping) else {}
    group = data.get("group_size", part_of(config, "quant_type_kwargs").get("group_size", 128))
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
    return Quantiser("torchao", [(None, scheme)], kept(config), head=lists(config))


def _of_hqq(config: Mapping[str, Any], dtype: str) -> Quantiser:
    how = part_of(config, "quant_config")
    own = [name for name, settings in how.items() if name != "weight_quant_params" and "nbits" in part_of(how, name)]
    whole = part_of(how, "weight_quant_params") or (how if "nbits" in how else {})
    schemes: list[tuple[Patterns | None, Scheme]] = [
        (Patterns([name]), _in_hqq(part_of(how, name), dtype)) for name in own if "nbits" in part_of(how, name)
    ]
    if whole:
        schemes.append((None, _in_hqq(whole, dtype)))
    if not schemes:
        raise Unstated("it lacks nbits")
    skipped = config.get("skip_modules") or []
    return Quantiser("HQQ", schemes, kept({"kept": ["lm_head", *flat(skipped)]}, "kept"), linear=True)


def _in_hqq(settings: Mapping[str, Any], dtype: str) -> Scheme:
    bits, group = settings.get("nbits"), settings.get("group_size", 64)
    if bits not in (1, 2, 3, 4, 8) or not (group is None or is_size(group)):
        raise Unstated(f"nbits is {str(bits)[:20]} and group_size {str(group)[:20]}")
    return grouped(bits, group, dtype, "W_q", "scale", "zero")


def _quanto(config: Mapping[str, Any], dtype: str) -> Quantiser:
    """Read optimum-quanto 0.2.7: 8 bits with a scale per row, or groups of 128 with a shift."""
    word = config.get("weights")
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
    return Quantiser("quanto", [(None, scheme)], kept(config), head=lists(config), linear=True)


def _bitnet(config: Mapping[str, Any], dtype: str) -> Quantiser:
    if config.get("quantization_mode") == "online":
        raise Unstated("its weights are stored unquantised, and quantised at run time")
    scheme = Scheme(
        "int2",
        lambda out, inputs: [
            StoredPart("weight", "uint8", (-(-out // 4), inputs)),
            StoredPart("weight_scale", dtype, (1,)),
        ],
    )
    return Quantiser("BitNet", [(None, scheme)], kept(config), head=lists(config), linear=True)


def _eetq(config: Mapping[str, Any], dtype: str) -> Quantiser:
    scheme = Scheme(
        "int8",
        lambda out, inputs: [
            StoredPart("weight", "int8", (inputs, out)),
            StoredPart("weight_scales", "float16", (out,)),
        ],
    )
    return Quantiser("EETQ", [(None, scheme)], kept(config), head=lists(config), linear=True)


def _auto_round(config: Mapping[str, Any], dtype: str) -> Quantiser:
    """Read AutoRound, whose packing is GPTQ's or AWQ's.

    `extra_config` sets the bits of single modules; 16 bits means not quantised.
    """
    form, scheme = str(config.get("packing_format")), gptq(bits_of(config), group_of(config), ordered=False)
    if "awq" in form:
        scheme = awq(bits_of(config), group_of(config))
    elif "gptq" not in form:
        raise Unstated(f"its packing_format is {form[:30]}")
    left = [
        name
        for name in part_of(config, "extra_config")
        if part_of(part_of(config, "extra_config"), name).get("bits") == 16
    ]
    return Quantiser("AutoRound", [(None, scheme)], kept({"kept": left}, "kept"), blocks=True, linear=True)


def _in_words(config: Mapping[str, Any], dtype: str) -> Quantiser:
    """Read MLX or transformers' Metal; MLX sets single modules, with false for unquantised ones."""
    metal = config["quant_method"] == "metal"
    own = [(name, one) for name, one in config.items() if isinstance(one, Mapping) and "bits" in one]
    whole = [name for name, one in config.items() if one is False]
    schemes: list[tuple[Patterns | None, Scheme]] = [(Patterns([name]), _in_mlx(one, dtype)) for name, one in own]
    schemes.append((None, _in_mlx(config, dtype)))
    left = kept(config) if metal else kept({"kept": whole}, "kept")
    return Quantiser("Metal" if metal else "MLX", schemes, left, head=not metal or lists(config), everything=not metal)


_FLOATS_OF_MLX = {"mxfp4": (4, 32), "nvfp4": (4, 16), "mxfp8": (8, 32)}


def _in_mlx(config: Mapping[str, Any], dtype: str) -> Scheme:
    mode = config.get("mode", "affine")
    if mode == "affine":
        return mlx(bits_of(config), size_of(config), dtype)
    if mode not in tuple(_FLOATS_OF_MLX):
        raise Unstated(f"its mode is {str(mode)[:20]}")
    return mlx(*_FLOATS_OF_MLX[mode], "uint8", biases=False)


_READERS: dict[str, Callable[[Mapping[str, Any], str], Quantiser]] = {
    "mxfp4": _mxfp4, "fp8": _fine_grained, "fbgemm-fp8": _fbgemm, "bitsandbytes": _bitsandbytes, "gptq": _of_gptq,
    "awq": _of_awq, "compressed-tensors": compressed_tensors, "modelopt": modelopt, "torchao": _torchao, "hqq": _of_hqq,
    "quanto": _quanto, "bitnet": _bitnet, "eetq": _eetq, "auto-round": _auto_round, "mlx": _in_words, "metal": _in_words,
}  # fmt: skip
# The dtype of unquantised tensors if the config states none; bfloat16 for all other methods.
_DTYPE = {"gptq": "float16", "awq": "float16", "bitsandbytes": "float16"}
