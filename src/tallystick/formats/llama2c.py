"""Read llama2.c's first format: seven integers, then float32 tensors grouped by kind.

The small TinyStories models are published in it (``stories15M.bin``). Each kind holds all its
layers in a row. A negative vocabulary size means that the classifier is stored too, at the end;
a positive one means that it is tied to the embedding.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

from tallystick.errors import BadInput
from tallystick.files.local import OpenFile
from tallystick.formats.weights_file import Header, StoredTensor, WeightsFile

KIND = "llama2c"
HEADER = struct.Struct("<7i")

_LATER = 0x616B3432  # "ak42", the magic number of later versions
_LARGEST = 1 << 24  # of a size; a larger value is not from a header
_MOST_LAYERS = 10_000
ANGLES = ("freqs_cos", "freqs_sin")  # tables of rotary angles, which readers recompute


class Kind(NamedTuple):
    """Consecutive tensors of one kind: one for each layer, or a single one."""

    name: str  # Hugging Face's name
    shape: tuple[int, ...]
    turned: int = 0  # heads whose adjacent channels form rotary pairs, as in Meta's files


class Layout(NamedTuple):
    """Contents of a header: a Llama config, and the tensors that follow."""

    config: dict[str, Any]
    kinds: list[Kind]

    def tensors(self) -> Iterator[tuple[str, Kind]]:
        """Yield each tensor's name and kind, in file order."""
        for kind in self.kinds:
            for layer in range(self.config["num_hidden_layers"] if "{}" in kind.name else 1):
                yield kind.name.format(layer), kind


def layout_of(file: OpenFile) -> Layout:
    """Return the layout of a file.

    Raises:
        BadInput: if the file's size does not match its header.
    """
    path, _, size, start = file
    if int.from_bytes(start[:4], "little") == _LATER:
        raise BadInput(
            f"{path} is a later version of llama2.c's format: only the first, without a version, is read",
            code="unsupported",
        )
    if len(start) < HEADER.size:
        raise BadInput(f"{path} is not a checkpoint: {size} bytes, too short for llama2.c's header", code="truncated")
    d, inner, layers, heads, kv_heads, vocabulary, context = HEADER.unpack(start[: HEADER.size])
    tied, vocabulary = vocabulary > 0, abs(vocabulary)
    sizes = (d, inner, layers, heads, kv_heads, vocabulary, context)
    sound = all(0 < one < _LARGEST for one in sizes) and layers <= _MOST_LAYERS
    if not sound or d % (2 * heads) or heads % kv_heads:  # rotary pairs need an even head size
        raise BadInput(
            f"{path} is not a known checkpoint: neither safetensors, torch.save nor llama2.c",
            code="unsupported",
        )
    keys = d // heads * kv_heads
    kinds = [
        Kind("model.embed_tokens.weight", (vocabulary, d)),
        Kind("model.layers.{}.input_layernorm.weight", (d,)),
        Kind("model.layers.{}.self_attn.q_proj.weight", (d, d), heads),
        Kind("model.layers.{}.self_attn.k_proj.weight", (keys, d), kv_heads),
        Kind("model.layers.{}.self_attn.v_proj.weight", (keys, d)),
        Kind("model.layers.{}.self_attn.o_proj.weight", (d, d)),
        Kind("model.layers.{}.post_attention_layernorm.weight", (d,)),
        Kind("model.layers.{}.mlp.gate_proj.weight", (inner, d)),
        Kind("model.layers.{}.mlp.down_proj.weight", (d, inner)),
        Kind("model.layers.{}.mlp.up_proj.weight", (inner, d)),
        Kind("model.norm.weight", (d,)),
        *(Kind(name, (context, d // heads // 2)) for name in ANGLES),
        *([] if tied else [Kind("lm_head.weight", (vocabulary, d))]),
    ]
    needed = HEADER.size + 4 * sum(math.prod(one.shape) * (layers if "{}" in one.name else 1) for one in kinds)
    if needed != size:
        raise BadInput(
            f"{path} has {size:,} bytes, but by llama2.c's header it should have {needed:,}", code="malformed"
        )
    config = {
        "model_type": "llama",
        "vocab_size": vocabulary,
        "hidden_size": d,
        "intermediate_size": inner,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "max_position_embeddings": context,
        "rms_norm_eps": 1e-5,
        "tie_word_embeddings": tied,
    }
    return Layout(config, kinds)


def sniff(file: OpenFile) -> bool:
    """Return whether a file's header states a model of exactly the file's size."""
    try:
        layout_of(file)
    except BadInput:
        return False
    return True


def read(file: OpenFile) -> WeightsFile:
    """Read the tensors of a file by the sizes in its header.

    Raises:
        BadInput: if the file's size does not match its header.
    """
    layout = layout_of(file)
    tensors, position = [], HEADER.size
    for name, kind in layout.tensors():
        start, position = position, position + 4 * math.prod(kind.shape)
        tensors.append(StoredTensor(name, "float32", kind.shape, start, position))
    files = [(file.path, Header(tensors, {}))]
    return WeightsFile(KIND, files, buffers=frozenset(ANGLES), config=layout.config)
