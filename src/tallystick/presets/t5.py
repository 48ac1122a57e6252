"""Google's T5, the first release, whose head is tied."""

from __future__ import annotations

from tallystick.presets._shape import Models, Values


def _t5(d: int, inner: int, size: int, heads: int, layers: int) -> Values:
    return {
        "model_type": "t5", "architectures": ["T5ForConditionalGeneration"], "vocab_size": 32128, "d_model": d,
        "d_ff": inner, "d_kv": size, "num_heads": heads, "num_layers": layers, "dtype": "float32",
    }  # fmt: skip


# google-t5/t5-…: Raffel et al. 2020, section 3.7, which rounds: 60M, 220M, 770M, 3B, 11B.
_T5: Models = {
    "t5-small": ("2019-10", _t5(512, 2048, 64, 8, 6)),
    "t5-base": ("2019-10", _t5(768, 3072, 64, 12, 12)),
    "t5-large": ("2019-10", _t5(1024, 4096, 64, 16, 24)),
    "t5-3b": ("2019-10", _t5(1024, 16384, 128, 32, 24)),
    "t5-11b": ("2019-10", _t5(1024, 65536, 128, 128, 24)),
}

FAMILIES = {"T5": _T5}
