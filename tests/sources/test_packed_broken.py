"""Packed weights whose parts contradict each other, and whatever a folder may hold."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from checkpoints import write, write_config
from hostile import rewritten, survives
from packings import (
    LAYOUTS,
    OWN,
    Layout,
    Stored,
    folder_of,
    gptq,
    mlx,
)
from tallystick import BadInput, count
from tallystick.cli.main import main
from tallystick.core.dtypes import BITS
from tallystick.formats.safetensors_json import DTYPES
from tallystick.formats.shards import read_checkpoint
from tallystick.sources.checkpoint.values import StoredValues
from tallystick.sources.quantized.detect import find_packed, quantisation_in

# -- what is broken -------------------------------------------------------------------------------


def broken(change: Callable[[Stored], object], layout: Layout) -> Layout:
    def stored(out: int, inputs: int) -> Stored:
        good = layout(out, inputs)
        change(good)
        return good

    return stored


def reshaped(name: str, *shape: int) -> Callable[[Stored], object]:
    return lambda stored: stored.update({name: (stored[name][0], shape, None)})


def says(text: str, kind: str = "nf4") -> Callable[[Stored], object]:
    name = f"weight.quant_state.bitsandbytes__{kind}"
    return lambda stored: stored.update({name: (torch.uint8, (len(text),), text.encode())})


@pytest.mark.parametrize(
    ("layout", "change", "words"),
    [
        ("GPTQ 4", reshaped("scales", 2, 7), r"qweight' of shape .* and '.*scales' of shape \(2, 7\) cannot belong"),
        ("GPTQ 4", reshaped("g_idx", 7), r"g_idx' of shape \(7,\) cannot belong to one packed weight"),
        ("GPTQ 4", reshaped("qzeros", 3, 1), "qzeros' of shape"),
        ("GPTQ 4", reshaped("qweight", 7), r"qweight' of shape \(7,\) cannot belong to a packed weight"),
        ("AWQ", reshaped("scales", 0, 0), "cannot belong"),
        ("AWQ gemv_fast", reshaped("scales", 8, 7), "scales' of shape"),
        ("bitsandbytes nf4", reshaped("weight.absmax", 1), "absmax' of shape"),
        ("bitsandbytes nf4", says("{"), "quant_state.bitsandbytes__nf4' holds"),
        ("bitsandbytes nf4", says("[" * 4000), "quant_state.bitsandbytes__nf4' holds"),
        ("bitsandbytes nf4", says('{"shape": [8, 8], "blocksize": 64}'), "packed values, but its quant_state says"),
        ("bitsandbytes nf4", says('{"shape": [-8, -8], "blocksize": 64}'), "gives the shape"),
        ("bitsandbytes nf4", says('{"shape": "8", "blocksize": 64}'), "gives the shape"),
        ("bitsandbytes nf4", lambda stored: stored.pop("weight.absmax"), "absmax' is missing"),
        ("bitsandbytes int8", reshaped("SCB", 5), "SCB' of shape"),
        ("pack-quantized 4", reshaped("weight_scale", 5, 5), "weight_scale' of shape"),
        (
            "pack-quantized 4",
            lambda stored: stored.update(weight_shape=(torch.int64, (99,), b"\x7f" * 792)),
            "weight_shape' says .{60}, which",
        ),
        ("nvfp4-pack-quantized", reshaped("weight_scale", 5, 5), "weight_scale' of shape"),
        ("NVFP4 of ModelOpt", reshaped("weight_scale", 64, 3), "weight_scale' of shape"),
        ("FP8 in tiles", reshaped("weight_scale_inv", 900, 900), "weight_scale_inv' of shape"),
        ("MLX 4", reshaped("biases", 1, 1), "biases' of shape"),
        ("MLX 4", reshaped("scales", 64, 5), "scales' of shape|with scales of shape"),
        ("MLX mxfp4", reshaped("scales", 64, 5), "scales' of shape"),
        ("Metal", reshaped("qbiases", 1, 1), "qbiases' of shape"),
        ("FP-Quant mxfp4", reshaped("scales", 64, 5), "scales' of shape"),
        ("Gemma 4", reshaped("weight_scale", 7, 1), "weight_scale' of shape"),
        ("EETQ", reshaped("weight_scales", 7), "weight_scales' of shape"),
        ("HQQ 4", reshaped("W_q", 3, 32), "W_q' holds up to 192 packed values, but its shape says"),
        ("HQQ 3", reshaped("W_q", 0, 0), "W_q' of shape"),
        ("HQQ 4", lambda stored: stored.update(shape=(torch.int64, (2,), b"\xff" * 16)), "its shape says"),
        ("quanto 4", reshaped("weight._scale", 7, 1), "_scale' of shape"),
        ("AQLM 2x8", reshaped("codebooks", 3, 256, 1, 8), "codebooks' of shape"),
        ("VPTQ", reshaped("perm", 7), "perm' of shape"),
        ("VPTQ", reshaped("indices", 1, 7, 7), "indices' of shape"),
        ("HIGGS 4", reshaped("scales", 7, 2), "scales' of shape"),
        ("HIGGS 4", lambda stored: stored.pop("tables"), "tables' is missing"),
        ("SpQR", reshaped("dense_weights", 7, 7), "dense_weights' of shape"),
        ("EXL2", reshaped("q_scale", 1, 7), "q_scale' of shape"),
        ("EXL3", reshaped("svh", 7), "svh' of shape"),
    ],
)
def test_parts_that_contradict_each_other_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], layout: str, change: Any, words: str
):
    path = folder_of(tmp_path, broken(change, LAYOUTS[layout][0]), **LAYOUTS[layout][2])
    with pytest.raises(BadInput, match=words) as error:
        count(path)
    assert str(error.value).isprintable()
    assert main(["count", str(path)]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert len(told) < 600 + len(str(tmp_path))


@pytest.mark.parametrize(
    "said", [{"bits": "four", "group_size": 32}, {"bits": 4, "group_size": -1}, {"bits": 99, "group_size": 32}]
)
def test_an_absurd_quantisation_is_refused(tmp_path: Path, said: dict[str, Any]):
    with pytest.raises(BadInput, match="the config's quantization says bits"):
        count(folder_of(tmp_path, mlx(4), quantization=said))


def test_a_quantisation_of_other_bits_is_refused(tmp_path: Path):
    with pytest.raises(BadInput, match="does not match the config's 8 bits and groups of 32"):
        count(folder_of(tmp_path, mlx(4), quantization={"bits": 8, "group_size": 32}))


@pytest.mark.parametrize(
    "said", ["x", [], 3, {"config_groups": {"a": 1}}, {"bits": None}, {"config_groups": []}], ids=str
)
def test_an_odd_quantization_config_beside_sound_weights_changes_nothing(tmp_path: Path, said: Any):
    assert count(folder_of(tmp_path, gptq(4), quantization_config=said)).total == OWN


@pytest.mark.parametrize(
    "told",
    ["{", "[]", '{"_type": "Int4Tensor"}', '{"_type": "Int4Tensor", "_data": {"shape": [64, -1]}}',
     '{"_type": "Int4Tensor", "_data": {"shape": [640, 64]}}', '{"_type": "Int4Tensor", "_data": {"shape": "x"}}'],
)  # fmt: skip
def test_metadata_of_torchao_that_cannot_be_true_is_refused(tmp_path: Path, told: str):
    tensors = {"a._weight_qdata": torch.zeros(64, 32, dtype=torch.uint8), "a._weight_scale": torch.ones(2, 64)}
    save_file(tensors, tmp_path / "model.safetensors", metadata={"a.weight": told})
    with pytest.raises(BadInput):
        count(tmp_path / "model.safetensors")


def test_names_that_only_look_packed_are_parameters(tmp_path: Path):
    """A model may call a parameter of its own so."""
    shapes = {"logit_scale": (1,), "h.0.time_blocks": (3, 4), "h.0.mlp.scales": (5,), "h.0.weight_packed": (4, 4)}
    ledger = count(write(tmp_path / "model.safetensors", shapes))
    assert ledger.totals["stored"] == 1 + 12 + 5 + 16
    assert ledger.total == 1 + 12 + 16  # scales by themselves are some quantiser's, as they were


# -- whatever a folder may hold -------------------------------------------------------------------

WORDS = {dtype: word for word, dtype in DTYPES.items()}
MOST_DATA = 1 << 20  # bytes of one tensor: what says more is refused by its header


def stored_in(layout: Layout) -> dict[str, Any]:
    """What one layer of a layout is stored as: the format's word for the dtype, the shape, the
    bytes that are noted.
    """
    return {
        f"model.layers.0.mlp.down_proj.{name}": [WORDS[str(dtype)[6:]], shape, (content or b"").decode("latin-1")]
        for name, (dtype, shape, content) in layout(64, 96).items()
    }


def put_stored(path: Path, changed: bytes) -> None:
    """A file of what is stored, where each tensor has as many bytes as it says that it takes."""
    try:
        stored = json.loads(changed)
    except (ValueError, RecursionError):  # numbers of thousands of digits, lists in thousands of lists
        stored = None
    header, data = {}, bytearray()
    for name, told in stored.items() if isinstance(stored, dict) else ():
        dtype, shape, note = told if isinstance(told, list) and len(told) == 3 else (told, told, "")
        sizes = shape if isinstance(shape, list) and all(type(size) is int and size >= 0 for size in shape) else [0]
        taken = math.prod(sizes) * BITS.get(DTYPES.get(str(dtype), ""), 0) // 8
        taken = taken if taken < MOST_DATA else 0
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + taken]}
        data += str(note).encode("latin-1", "replace").ljust(taken, b"\0")[:taken]
    header_text = json.dumps(header).encode()
    path.write_bytes(len(header_text).to_bytes(8, "little") + header_text + data)


def packed_alone(path: Path, config: dict[str, Any]) -> None:
    """What is packed in a file, without the ledger that is made of it."""
    contents = read_checkpoint(path)
    ((_, header),) = contents.files
    find_packed(header.tensors, quantisation_in(config), header.metadata, StoredValues(contents.files).peek)


@pytest.mark.parametrize("name", LAYOUTS)
def test_other_parts_are_counted_or_refused(tmp_path: Path, name: str):
    layout, _, more = LAYOUTS[name]
    path = tmp_path / "model.safetensors"
    write_config(tmp_path, more)
    read = partial(packed_alone, config=more)
    assert survives(path, rewritten(stored_in(layout), most=8), put=partial(put_stored, path), read=read)


@pytest.mark.parametrize("name", ["GPTQ 4", "AWQ gemv", "MLX 4", "pack-quantized 4"])
def test_another_quantisation_is_counted_or_refused(tmp_path: Path, name: str):
    layout, _, more = LAYOUTS[name]
    folder = folder_of(tmp_path, layout, None)
    groups = {"group_0": {"weights": {"num_bits": 4, "group_size": 32, "type": "int"}, "targets": ["Linear"]}}
    said = {
        "quantization_config": {"bits": 4, "group_size": 32, "quant_method": "any", "config_groups": groups},
        **more,
    }
    survives(folder / "config.json", rewritten(said, most=30), source=folder, read=None)
