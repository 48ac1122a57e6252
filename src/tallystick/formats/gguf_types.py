"""GGUF's type numbers of tensors and metadata values."""

from __future__ import annotations

# ggml's types, by torch's name if it has one, else by ggml's. Gaps are types removed from ggml.
TENSOR_TYPES = {
    0: "float32", 1: "float16", 2: "q4_0", 3: "q4_1", 6: "q5_0", 7: "q5_1", 8: "q8_0", 9: "q8_1", 10: "q2_k", 11: "q3_k",
    12: "q4_k", 13: "q5_k", 14: "q6_k", 15: "q8_k", 16: "iq2_xxs", 17: "iq2_xs", 18: "iq3_xxs", 19: "iq1_s", 20: "iq4_nl",
    21: "iq3_s", 22: "iq2_s", 23: "iq4_xs", 24: "int8", 25: "int16", 26: "int32", 27: "int64", 28: "float64", 29: "iq1_m",
    30: "bfloat16", 34: "tq1_0", 35: "tq2_0", 39: "mxfp4", 40: "nvfp4", 41: "q1_0", 42: "q2_0",
}  # fmt: skip

# Metadata values: `struct` formats of scalars, then the types of a string and an array.
SCALARS = dict(enumerate("BbHhIif?")) | {10: "Q", 11: "q", 12: "d"}
UINT32, TEXT, LIST = 4, 8, 9
