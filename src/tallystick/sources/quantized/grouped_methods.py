"""Read the configs of compressed-tensors and ModelOpt, with settings per group."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tallystick.sources.quantized.excluded_modules import Patterns
from tallystick.sources.quantized.layouts import E4M3, Scheme, StoredPart, Unstated, fp8, narrow_floats, tiles
from tallystick.sources.quantized.packed_weight import is_size
from tallystick.sources.quantized.settings import Quantiser, flat, kept, part_of


def compressed_tensors(quantization: Mapping[str, Any], dtype: str) -> Quantiser:
    """Return compressed-tensors 0.20's quantiser: groups of targets; `ignore` comes first.

    Args:
        quantization: the `quantization_config`.
        dtype: the dtype of the scales.

    Raises:
        Unstated: if a group's format is unknown, or no group quantises weights.
    """
    groups = part_of(quantization, "config_groups")
    schemes = []
    for group in groups.values():
        if not isinstance(group, Mapping) or not isinstance(group.get("weights"), Mapping):
            continue  # only activations are quantised
        form = str(group.get("format") or quantization.get("format") or "")
        schemes.append((_targets(group), _of_weights(group["weights"], form, group.get("input_activations"), dtype)))
    if not schemes:
        raise Unstated("none of its groups quantises weights")
    return Quantiser("compressed-tensors", schemes, kept(quantization, "ignore"), head=True)


def _of_weights(weights: Mapping[str, Any], form: str, inputs: Any, dtype: str) -> Scheme:
    """Return one group's layout, by its bits and format."""
    bits, kind, strategy = weights.get("num_bits"), weights.get("type", "int"), weights.get("strategy")
    group = weights.get("group_size")
    scale = _scales(weights, strategy, group)
    if (bits, kind) == (8, "float") and form in ("float-quantized", "naive-quantized", ""):
        fixed = isinstance(inputs, Mapping) and inputs.get("dynamic") is False
        return fp8(scale, dtype, *((StoredPart("input_scale", dtype, (1,)),) if fixed else ()))
    if (bits, kind) == (4, "float") and form in ("nvfp4-pack-quantized", "mxfp4-pack-quantized"):
        nv = form.startswith("nv")
        names = ("weight_global_scale", *(("input_global_scale",) if isinstance(inputs, Mapping) else ()))
        return narrow_floats(16, scale=E4M3, others=names) if nv else narrow_floats(32)
    zeros = weights.get("symmetric") is False
    if kind == "int" and bits == 8 and form in ("int-quantized", "naive-quantized", ""):
        return Scheme(
            "int8",
            lambda out, inputs: [
                StoredPart("weight", "int8", (out, inputs)),
                StoredPart("weight_scale", dtype, scale(out, inputs)),
                *([StoredPart("weight_zero_point", "int8", scale(out, inputs))] if zeros else []),
            ],
        )
    if kind == "int" and is_size(bits) and bits <= 8 and form == "pack-quantized":
        ordered = weights.get("actorder") == "group"
        return Scheme(
            f"int{bits}",
            lambda out, inputs: [
                StoredPart("weight_packed", "int32", (out, -(-inputs * bits // 32))),
                StoredPart("weight_scale", dtype, scale(out, inputs)),
                StoredPart("weight_shape", "int64", (2,)),
                *(
                    [StoredPart("weight_zero_point", "int32", (-(-out * bits // 32), *scale(out, inputs)[1:]))]
                    if zeros
                    else []
                ),
                *([StoredPart("weight_g_idx", "int32", (inputs,))] if ordered else []),
            ],
        )
    raise Unstated(f"one of its groups has {bits} bits of type {kind} in the format {form!r}"[:100])


def _scales(weights: Mapping[str, Any], strategy: object, group: Any) -> Callable[[int, int], tuple[int, ...]]:
    """Return the shape of a matrix's scales."""
    if strategy == "block":
        return tiles(weights.get("block_structure"))
    if strategy == "channel" or (strategy == "group" and group == -1):
        return lambda out, _: (out, 1)
    if strategy in ("group", "tensor_group") and is_size(group):
        return lambda out, inputs: (out, -(-inputs // group))
    if strategy in (None, "tensor"):
        return lambda *_: (1,)
    raise Unstated(f"one of its groups has the strategy {str(strategy)[:20]} and the group size {str(group)[:20]}")


def modelopt(quantization: Mapping[str, Any], dtype: str) -> Quantiser:
    """Return NVIDIA ModelOpt's quantiser: groups, or single modules in `quantized_layers`.

    Args:
        quantization: the `quantization_config`.
        dtype: unused; ModelOpt's scales have fixed dtypes.

    Raises:
        Unstated: if the algorithm is unknown.
    """
    layers = part_of(quantization, "quantized_layers")
    algorithm = quantization.get("quant_algo")
    each: dict[str, list[str]] = {}
    for name, settings in layers.items():
        each.setdefault(str(settings.get("quant_algo") if isinstance(settings, Mapping) else ""), []).append(str(name))
    schemes: list[tuple[Patterns | None, Scheme]] = [
        (Patterns(names), _by_algorithm(kind)) for kind, names in each.items()
    ]
    # Modules that are not listed keep the fp8 of the base model.
    if quantization.get("quant_method") == "fp8" and quantization.get("weight_block_size"):
        schemes.append((None, fp8(tiles(quantization["weight_block_size"]))))
    if not schemes:
        schemes.append((None, _by_algorithm(str(algorithm))))
    return Quantiser(f"ModelOpt {algorithm}"[:40], schemes, kept(quantization, "ignore", "exclude_modules"), head=True)


def _by_algorithm(word: str) -> Scheme:
    one = (StoredPart("input_scale", "float32", (1,)),)
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


def _targets(group: Mapping[str, Any]) -> Patterns | None:
    targets = list(flat(group.get("targets") or ["Linear"]))
    return None if "Linear" in targets else Patterns(targets)
