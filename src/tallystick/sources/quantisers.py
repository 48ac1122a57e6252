"""What each quantiser stores for a matrix, and for which modules, as a config states it: the layouts that `packings` reads.

A config that leaves a size open gives no layout: a reader is told so, and the matrix counts in its dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from tallystick.sources.excluded import Patterns
from tallystick.sources.packed_parts import is_size
from tallystick.sources.quantised_layouts import (
    E4M3,
    Part,
    Scheme,
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


class Quantiser(NamedTuple):
    """What a config says of its quantisation."""

    method: str
    schemes: list[tuple[Patterns | None, Scheme]]  # for which modules, None all; the first that fits
    kept: Patterns  # modules that stay as they are
    head: bool = False  # an LM head of its own is quantised too, where it is not among those
    blocks: bool = False  # nothing outside of the numbered blocks is
    experts: bool = False  # nothing but experts is
    linear: bool = False  # only modules that are nn.Linear, and no experts fused to one tensor
    everything: bool = False  # embeddings and routers are too
    dtype: str = "bfloat16"  # of all else, where the config states none

    def scheme_of(self, names: Iterable[str]) -> Scheme | None:
        """How a module is stored, by any of the names that it goes by; None as it is."""
        names = tuple(names)
        if any(map(self.kept.matches, names)):
            return None
        return next((one for meant, one in self.schemes if meant is None or any(map(meant.matches, names))), None)

    @property
    def unread(self) -> list[str]:
        """What it lists that is not read as a pattern."""
        return [one for listed in (self.kept, *(meant for meant, _ in self.schemes if meant)) for one in listed.unread]

    @property
    def by_layer(self) -> bool:
        """Whether a layer may be stored otherwise than the next."""
        return any(one.by_layer for one in (self.kept, *(meant for meant, _ in self.schemes if meant)))


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
    if told.get("quant_algo") or _of(told, "producer").get("name") == "modelopt":
        return "modelopt"
    if told.get("load_in_4bit") or told.get("load_in_8bit"):
        return "bitsandbytes"
    return "mlx" if {"bits", "group_size"} <= told.keys() else ""


# -- what each says -----------------------------------------------------------------------------------


def _mxfp4(told: Mapping[str, Any], dtype: str) -> Quantiser:
    return Quantiser("MXFP4", [(None, narrow_floats(32, of="blocks"))], _kept(told), experts=True)


def _fine_grained(told: Mapping[str, Any], dtype: str) -> Quantiser:
    """Transformers 5.23, FineGrainedFP8Config; `ignored_layers` is AutoFP8's, `expert_dtype` DeepSeek-V4's."""
    size, narrow = told.get("weight_block_size"), told.get("expert_dtype")
    if narrow not in (None, "fp8", "fp4"):
        raise Unstated(f"its experts are in {str(narrow)[:20]}")
    scale = "float8_e8m0fnu" if told.get("scale_fmt") == "ue8m0" else "float32"
    inputs = (Part("input_scale", "float32", (1,)),) if told.get("activation_scheme") == "static" else ()
    tiled = fp8(tiles(size), scale, *inputs) if size is not None else fp8(lambda *_: (1,), "float32", *inputs)
    experts = (Patterns(["experts"]), narrow_floats(32, of="weight", scale=scale))
    kept = _kept(told, "modules_to_not_convert", "ignored_layers")
    return Quantiser("FP8", [*([experts] if narrow == "fp4" else []), (None, tiled)], kept, head=_lists(told))


def _fbgemm(told: Mapping[str, Any], dtype: str) -> Quantiser:
    scheme = fp8(lambda out, _: (out, 1))
    return Quantiser("FBGEMM FP8", [(None, scheme)], _kept(told), head=_lists(told))


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
    return Quantiser("bitsandbytes", [(None, scheme)], _kept(told, skipped), head=_lists(told, skipped), linear=True)


def _of_gptq(told: Mapping[str, Any], dtype: str) -> Quantiser:
    """AutoGPTQ 0.7 and GPTQModel, whose `dynamic` gives modules settings of their own: ``-:`` leaves them out."""
    if told.get("checkpoint_format") not in (None, "gptq", "gptq_v2"):
        raise Unstated(f"its checkpoint_format is {str(told['checkpoint_format'])[:20]}")
    own, left = [], []
    for pattern, settings in _of(told, "dynamic").items():
        if str(pattern).startswith("-:"):
            left.append(f"re:{pattern[2:]}")
        else:
            whole = {**told, **(settings if isinstance(settings, Mapping) else {})}
            own.append((Patterns([f"re:{str(pattern).removeprefix('+:')}"]), gptq(_bits(whole), _group(whole))))
    inside = told.get("modules_in_block_to_quantize")
    meant = Patterns(_flat(inside)) if inside else None
    kept = _kept({"kept": [*left, *_flat(told.get("modules_to_not_convert") or [])]}, "kept")
    schemes = [*own, (meant, gptq(_bits(told), _group(told)))]
    return Quantiser("GPTQ", schemes, kept, head=told.get("lm_head") is True, blocks=True, linear=True)


def _of_awq(told: Mapping[str, Any], dtype: str) -> Quantiser:
    version = str(told.get("version") or "gemm").lower()
    if version != "gemm":
        raise Unstated(f"its version is {version[:20]}")
    return Quantiser("AWQ", [(None, awq(_bits(told), _group(told)))], _kept(told), linear=True)


def _compressed(told: Mapping[str, Any], dtype: str) -> Quantiser:
    """compressed-tensors 0.20: groups of targets; what is ignored comes before all."""
    groups = _of(told, "config_groups")
    schemes = []
    for group in groups.values():
        if not isinstance(group, Mapping) or not isinstance(group.get("weights"), Mapping):
            continue  # activations alone
        form = str(group.get("format") or told.get("format") or "")
        schemes.append((_targets(group), _of_weights(group["weights"], form, group.get("input_activations"), dtype)))
    if not schemes:
        raise Unstated("no group of it says anything of weights")
    return Quantiser("compressed-tensors", schemes, _kept(told, "ignore"), head=True)


def _of_weights(weights: Mapping[str, Any], form: str, inputs: Any, dtype: str) -> Scheme:
    """One group's, by its bits and format."""
    bits, kind, strategy = weights.get("num_bits"), weights.get("type", "int"), weights.get("strategy")
    group = weights.get("group_size")
    scale = _scales(weights, strategy, group)
    if (bits, kind) == (8, "float") and form in ("float-quantized", "naive-quantized", ""):
        fixed = isinstance(inputs, Mapping) and inputs.get("dynamic") is False
        return fp8(scale, dtype, *((Part("input_scale", dtype, (1,)),) if fixed else ()))
    if (bits, kind) == (4, "float") and form in ("nvfp4-pack-quantized", "mxfp4-pack-quantized"):
        nv = form.startswith("nv")
        names = ("weight_global_scale", *(("input_global_scale",) if isinstance(inputs, Mapping) else ()))
        return narrow_floats(16, scale=E4M3, others=names) if nv else narrow_floats(32)
    zeros = weights.get("symmetric") is False
    if kind == "int" and bits == 8 and form in ("int-quantized", "naive-quantized", ""):
        return Scheme(
            "int8",
            lambda out, inputs: [
                Part("weight", "int8", (out, inputs)),
                Part("weight_scale", dtype, scale(out, inputs)),
                *([Part("weight_zero_point", "int8", scale(out, inputs))] if zeros else []),
            ],
        )
    if kind == "int" and is_size(bits) and bits <= 8 and form == "pack-quantized":
        ordered = weights.get("actorder") == "group"
        return Scheme(
            f"int{bits}",
            lambda out, inputs: [
                Part("weight_packed", "int32", (out, -(-inputs * bits // 32))),
                Part("weight_scale", dtype, scale(out, inputs)),
                Part("weight_shape", "int64", (2,)),
                *(
                    [Part("weight_zero_point", "int32", (-(-out * bits // 32), *scale(out, inputs)[1:]))]
                    if zeros
                    else []
                ),
                *([Part("weight_g_idx", "int32", (inputs,))] if ordered else []),
            ],
        )
    raise Unstated(f"a group of it has {bits} bits of type {kind} in the format {form!r}"[:100])


def _scales(weights: Mapping[str, Any], strategy: object, group: Any) -> Callable[[int, int], tuple[int, ...]]:
    """The shape of a matrix's scales."""
    if strategy == "block":
        return tiles(weights.get("block_structure"))
    if strategy == "channel" or (strategy == "group" and group == -1):
        return lambda out, _: (out, 1)
    if strategy in ("group", "tensor_group") and is_size(group):
        return lambda out, inputs: (out, -(-inputs // group))
    if strategy in (None, "tensor"):
        return lambda *_: (1,)
    raise Unstated(f"a group of it has the strategy {str(strategy)[:20]} and the group size {str(group)[:20]}")


def _modelopt(told: Mapping[str, Any], dtype: str) -> Quantiser:
    """NVIDIA ModelOpt: groups as in compressed-tensors, or modules one by one in `quantized_layers`."""
    layers = _of(told, "quantized_layers")
    algorithm = told.get("quant_algo")
    each: dict[str, list[str]] = {}
    for name, settings in layers.items():
        each.setdefault(str(settings.get("quant_algo") if isinstance(settings, Mapping) else ""), []).append(str(name))
    schemes: list[tuple[Patterns | None, Scheme]] = [
        (Patterns(names), _by_algorithm(kind)) for kind, names in each.items()
    ]
    if told.get("quant_method") == "fp8" and told.get("weight_block_size"):  # the rest as it was before
        schemes.append((None, fp8(tiles(told["weight_block_size"]))))
    if not schemes:
        schemes.append((None, _by_algorithm(str(algorithm))))
    return Quantiser(f"ModelOpt {algorithm}"[:40], schemes, _kept(told, "ignore", "exclude_modules"), head=True)


def _by_algorithm(word: str) -> Scheme:
    one = (Part("input_scale", "float32", (1,)),)
    known = {
        "FP8": fp8(lambda *_: (1,), "float32", *one),
        "FP8_PB_WO": fp8(tiles((128, 128))),
        "NVFP4": narrow_floats(16, of="weight", scale=E4M3, others=("weight_scale_2", "input_scale")),
        "W4A16_NVFP4": narrow_floats(16, of="weight", scale=E4M3, others=("weight_scale_2",)),
        "MXFP8": fp8(lambda out, inputs: (out, -(-inputs // 32)), "uint8"),
    }
    if word not in known:
        raise Unstated(f"its quant_algo is {word[:30]}")
    return known[word]


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
    data = _of(default, "_data") if isinstance(default, Mapping) else {}
    group = data.get("group_size", _of(told, "quant_type_kwargs").get("group_size", 128))
    if kind in ("int8weightonly", "int8dynamicactivationint8weight"):
        scheme = Scheme(
            "int8",
            lambda out, inputs: [
                Part("weight", "int8", (out, inputs)),
                Part("weight_scale", "float32", (out, 1)),
                Part("weight_zero_point", "int8", (out, 1)),
            ],
        )
    elif kind == "int4weightonly" and is_size(group):
        scheme = grouped(4, group, dtype, "weight_qdata", "weight_scale", "weight_zero_point")
    elif kind in ("float8weightonly", "float8dynamicactivationfloat8weight"):
        rows = "perrow" in str(data.get("granularity")).lower() or kind == "float8weightonly"
        scheme = fp8((lambda out, _: (out, 1)) if rows else (lambda *_: (1, 1)))
    else:
        raise Unstated(f"its quant_type is {kind[:40]}")
    return Quantiser("torchao", [(None, scheme)], _kept(told), head=_lists(told))


def _of_hqq(told: Mapping[str, Any], dtype: str) -> Quantiser:
    how = _of(told, "quant_config")
    own = [name for name, settings in how.items() if name != "weight_quant_params" and "nbits" in _of(how, name)]
    whole = _of(how, "weight_quant_params") or (how if "nbits" in how else {})
    schemes: list[tuple[Patterns | None, Scheme]] = [
        (Patterns([name]), _in_hqq(_of(how, name), dtype)) for name in own if "nbits" in _of(how, name)
    ]
    if whole:
        schemes.append((None, _in_hqq(whole, dtype)))
    if not schemes:
        raise Unstated("it says no nbits")
    skipped = told.get("skip_modules") or []
    return Quantiser("HQQ", schemes, _kept({"kept": ["lm_head", *_flat(skipped)]}, "kept"), linear=True)


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
            lambda out, inputs: [Part("weight._data", kind, (out, inputs)), Part("weight._scale", dtype, (out, 1))],
        )
    elif word in ("int4", "int2"):
        scheme = grouped(int(word[-1]), 128, dtype, "weight._data._data", "weight._scale", "weight._shift")
    else:
        raise Unstated(f"weights is {str(word)[:20]}")
    return Quantiser("quanto", [(None, scheme)], _kept(told), head=_lists(told), linear=True)


def _bitnet(told: Mapping[str, Any], dtype: str) -> Quantiser:
    if told.get("quantization_mode") == "online":
        raise Unstated("its weights are stored as they are, and quantised as they are used")
    scheme = Scheme(
        "int2",
        lambda out, inputs: [
            Part("weight", "uint8", (-(-out // 4), inputs)),
            Part("weight_scale", dtype, (1,)),
        ],
    )
    return Quantiser("BitNet", [(None, scheme)], _kept(told), head=_lists(told), linear=True)


def _eetq(told: Mapping[str, Any], dtype: str) -> Quantiser:
    scheme = Scheme(
        "int8",
        lambda out, inputs: [
            Part("weight", "int8", (inputs, out)),
            Part("weight_scales", "float16", (out,)),
        ],
    )
    return Quantiser("EETQ", [(None, scheme)], _kept(told), head=_lists(told), linear=True)


def _in_words(told: Mapping[str, Any], dtype: str) -> Quantiser:
    """MLX, with settings of their own for single modules and false for those that are left; and transformers' Metal."""
    metal = told["quant_method"] == "metal"
    if told.get("mode", "affine") != "affine":
        raise Unstated(f"its mode is {str(told['mode'])[:20]}")
    own = [(name, settings) for name, settings in told.items() if isinstance(settings, Mapping) and "bits" in settings]
    kept = [name for name, settings in told.items() if settings is False]
    schemes: list[tuple[Patterns | None, Scheme]] = [
        (Patterns([name]), mlx(_bits(one), _size(one), dtype)) for name, one in own
    ]
    schemes.append((None, mlx(_bits(told), _size(told), dtype)))
    left = _kept(told) if metal else _kept({"kept": kept}, "kept")
    return Quantiser("Metal" if metal else "MLX", schemes, left, head=not metal or _lists(told), everything=not metal)


_READERS: dict[str, Callable[[Mapping[str, Any], str], Quantiser]] = {
    "mxfp4": _mxfp4, "fp8": _fine_grained, "fbgemm-fp8": _fbgemm, "bitsandbytes": _bitsandbytes, "gptq": _of_gptq,
    "awq": _of_awq, "compressed-tensors": _compressed, "modelopt": _modelopt, "torchao": _torchao, "hqq": _of_hqq,
    "quanto": _quanto, "bitnet": _bitnet, "eetq": _eetq, "mlx": _in_words, "metal": _in_words,
}  # fmt: skip
# Of what is not quantised, where the config states none: that of GPTQ's and AWQ's kernels; of all others bfloat16.
_DTYPE = {"gptq": "float16", "awq": "float16", "bitsandbytes": "float16"}


# -- the keys of a config -----------------------------------------------------------------------------


def _kept(told: Mapping[str, Any], *keys: str) -> Patterns:
    return Patterns(one for key in keys or ("modules_to_not_convert",) for one in _flat(told.get(key) or []))


def _lists(told: Mapping[str, Any], key: str = "modules_to_not_convert") -> bool:
    """Whether modules to leave are listed: then an LM head that is not among them is quantised (`get_modules_to_not_convert`)."""
    return isinstance(told.get(key) or told.get("ignored_layers"), list)


def _targets(group: Mapping[str, Any]) -> Patterns | None:
    targets = list(_flat(group.get("targets") or ["Linear"]))
    return None if "Linear" in targets else Patterns(targets)


def _flat(value: Any) -> Iterator[Any]:
    """The items of a list, and of the lists in it; a word alone is one."""
    for one in value if isinstance(value, list | tuple) else [value]:
        yield from one if isinstance(one, list | tuple) else (one,)


def _of(told: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = told.get(key)
    return found if isinstance(found, Mapping) else {}


def _bits(told: Mapping[str, Any]) -> int:
    bits = told.get("bits", told.get("w_bit"))
    if not is_size(bits) or bits > 8:
        raise Unstated(f"bits is {str(bits)[:20]}")
    return bits


def _size(told: Mapping[str, Any]) -> int:
    group = _group(told)
    if group is None:
        raise Unstated("it says no group_size")
    return group


def _group(told: Mapping[str, Any]) -> int | None:
    """Inputs that share a scale; None is all."""
    group = told.get("group_size", told.get("q_group_size", 128))
    if group == -1:
        return None
    if not is_size(group):
        raise Unstated(f"group_size is {str(group)[:20]}")
    return group
