"""Parts that families share: attention, MLP, experts, model frames, layers of several kinds.

``from tallystick.architectures import kit`` imports these. Parts that only a few families share
are separate modules of this package.
"""

from tallystick.architectures.kit.attention import (
    SLIDING,
    attention,
    head_dim,
    head_norms,
    heads,
    in_runs,
    key_value_heads,
    late_windows,
    rope_windows,
    rotary_dim,
    rounded,
    share_of,
    times,
    windows_of,
)
from tallystick.architectures.kit.experts import NUMBERED, SINGLE, experts_used, mixture, router
from tallystick.architectures.kit.frames import decoder, frame, listable, pre_norm, refuse_keys, transformer, two_kinds
from tallystick.architectures.kit.layers import (
    FEED_FORWARD,
    FULL,
    LINEAR,
    as_published,
    checked,
    dense_and_sparse,
    in_turns,
    listed,
)
from tallystick.architectures.kit.mlp import HIDDEN_ACT_SILU, fused_gated_mlp, gated_mlp, plain_mlp

__all__ = [
    "FEED_FORWARD",
    "FULL",
    "HIDDEN_ACT_SILU",
    "LINEAR",
    "NUMBERED",
    "SINGLE",
    "SLIDING",
    "as_published",
    "attention",
    "checked",
    "decoder",
    "dense_and_sparse",
    "experts_used",
    "frame",
    "fused_gated_mlp",
    "gated_mlp",
    "head_dim",
    "head_norms",
    "heads",
    "in_runs",
    "in_turns",
    "key_value_heads",
    "late_windows",
    "listable",
    "listed",
    "mixture",
    "plain_mlp",
    "pre_norm",
    "refuse_keys",
    "rope_windows",
    "rotary_dim",
    "rounded",
    "router",
    "share_of",
    "times",
    "transformer",
    "two_kinds",
    "windows_of",
]
