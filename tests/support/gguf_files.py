"""GGUF files as the tests write them."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

# Numbers of types, elements and bytes of a block: from the documentation of the format and ggml's
# structs.
F32, F16, Q4_0, Q8_0, Q4_K, Q6_K, BF16, MXFP4, Q2_0 = 0, 1, 2, 8, 12, 14, 30, 39, 42


BYTES = {
    F32: (1, 4),
    F16: (1, 2),
    Q4_0: (32, 18),
    Q8_0: (32, 34),
    Q4_K: (256, 144),
    Q6_K: (256, 210),
    BF16: (1, 2),
    MXFP4: (32, 17),
    Q2_0: (64, 18),
}


U32, F32_VALUE, BOOL, TEXT, LIST = 4, 6, 7, 8, 9


Tensors = Mapping[str, tuple[Sequence[int], int]]  # (shape, type)


def text(value: str, order: str = "<") -> bytes:
    return struct.pack(order + "Q", len(value.encode())) + value.encode()


def value(given: Any, order: str = "<") -> bytes:
    """A value of the metadata with its type before it."""
    match given:
        case bool():
            return struct.pack(order + "IB", BOOL, given)
        case int():
            return struct.pack(order + "II", U32, given)
        case float():
            return struct.pack(order + "If", F32_VALUE, given)
        case str():
            return struct.pack(order + "I", TEXT) + text(given, order)
    kind = TEXT if isinstance(given[0], str) else U32
    items = b"".join(text(one, order) if kind == TEXT else struct.pack(order + "I", one) for one in given)
    return struct.pack(order + "IIQ", LIST, kind, len(given)) + items


def gguf(
    tensors: Tensors,
    metadata: Mapping[str, Any],
    *,
    version: int = 3,
    alignment: int = 32,
    data: bool = True,
    order: str = "<",
) -> bytes:
    """A whole file: zeros for weights, each tensor at the next multiple of the alignment."""
    header = b"GGUF" + struct.pack(order + "IQQ", version, len(tensors), len(metadata))
    header += b"".join(text(key, order) + value(given, order) for key, given in metadata.items())
    end = 0
    for name, (shape, kind) in tensors.items():
        sizes = [*reversed(shape)]
        header += text(name, order) + struct.pack(f"{order}I{len(sizes)}QIQ", len(sizes), *sizes, kind, end)
        elements, size = BYTES[kind]
        end += math.prod(shape) // elements * size
        end += -end % alignment
    return header + bytes(-len(header) % alignment) + bytes(end if data else 0)


LLAMA = {
    "general.architecture": "llama",
    "llama.block_count": 2,
    "tokenizer.ggml.tokens": ["a", "b", "größe"],
    "llama.rope.freq_base": 1e4,
}


def llama(*, head: bool = True, matrices: int = Q4_K) -> Tensors:
    """A llama of two layers, 256 wide, as llama.cpp's converter names it."""
    layer = {
        "attn_norm": ((256,), F32), "attn_q": ((256, 256), matrices), "attn_k": ((64, 256), matrices), "attn_v": ((64, 256), Q6_K),
        "attn_output": ((256, 256), matrices), "ffn_norm": ((256,), F32), "ffn_gate": ((512, 256), matrices),
        "ffn_up": ((512, 256), matrices), "ffn_down": ((256, 512), Q6_K),
    }  # fmt: skip
    return {
        "token_embd.weight": ((100, 256), Q6_K),
        **{f"blk.{number}.{name}.weight": told for number in range(2) for name, told in layer.items()},
        "output_norm.weight": ((256,), F32),
        "rope_freqs.weight": ((32,), F32),
        **({"output.weight": ((100, 256), Q6_K)} if head else {}),
    }


def written(path: Path, *given: Any, **more: Any) -> Path:
    path.write_bytes(gguf(*given, **more))
    return path
