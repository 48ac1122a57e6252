"""The models of a first course (tallystick.models.teaching), at sizes for pencil and paper."""

from __future__ import annotations

from tallystick.presets._shape import Models, Values

_COURSE: dict[str, Values] = {
    "embedding": {"model_type": "embedding", "vocab_size": 256, "d_model": 5},
    "bare-bones-lm": {"model_type": "bare_bones_lm", "vocab_size": 1000, "d_model": 64},
    "mlp": {"model_type": "mlp", "inputs": 784, "width": 128, "depth": 2, "outputs": 10},
    "feed-forward-lm": {
        "model_type": "feed_forward_lm", "vocab_size": 1000, "context_length": 4, "d_model": 64, "width": 128,
        "depth": 2,
    },
    "position-wise-lm": {"model_type": "position_wise_lm", "vocab_size": 256, "d_model": 5, "width": 16},
    "single-head-attention": {"model_type": "single_head_attention", "d_model": 64, "d_head": 16},
    "multi-head-attention": {"model_type": "multi_head_attention", "d_model": 64, "n_heads": 4},
    "transformer-layer": {"model_type": "transformer_layer", "d_model": 64, "n_heads": 4, "d_ff": 256},
    "transformer-lm": {
        "model_type": "transformer_lm", "vocab_size": 1000, "context_length": 32, "d_model": 64, "n_layers": 2,
        "n_heads": 4, "d_ff": 256,
    },
    "rotary-transformer-lm": {
        "model_type": "rotary_transformer_lm", "vocab_size": 1000, "d_model": 64, "n_layers": 2, "n_heads": 4,
        "d_ff": 256,
    },
}  # fmt: skip

_TEACHING: Models = {name: ("", values) for name, values in _COURSE.items()}

FAMILIES = {"first course": _TEACHING}
