"""Rotary position embeddings (RoPE) and their scalings for longer contexts."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from tallystick.errors import BadInput, nearest, quoted, shown
from tallystick.models.config import DecoderConfig, Rope


class Rotation(NamedTuple):
    """Cosines and sines at some positions; each (B or 1, 1, T, rotated channels)."""

    cos: Tensor
    sin: Tensor


def rotation(c: DecoderConfig, rope: Rope, positions: Tensor) -> Rotation:
    """Return the rotation of a decoder's heads at some positions.

    Nothing is kept between calls: a table could be lost on the meta device, or be rounded with
    the model's dtype.

    Args:
        c: config of the decoder.
        rope: its rotary position embedding.
        positions: (B or 1, T), in tokens. Two of the scalings depend on the largest position.
    """
    frequencies, factor = _frequencies(c, rope, positions)
    angles = positions[:, None, :, None].float() * frequencies  # (B, 1, T, pairs)
    angles = torch.cat((angles, angles), dim=-1)
    sign = -1 if rope.backwards else 1
    return Rotation(angles.cos() * factor, angles.sin() * (factor * sign))


def check_rope(c: DecoderConfig, rope: Rope) -> None:
    """Raise BadInput for an unknown RoPE scaling, and for one with missing or extra numbers."""
    kind = rope.scaling.get("rope_type", "default")
    if kind not in _SCALINGS:
        raise BadInput(f"rope_type {quoted(kind)} is not known{nearest(str(kind), _SCALINGS)}", code="unsupported")
    for key in _NEEDS.get(kind, ()):
        value = rope.scaling.get(key)
        if not isinstance(value, list if key.endswith("_factor") and kind == "longrope" else int | float):
            raise BadInput(f"rope_type {kind} needs {key}, which is {shown(value)}", code="bad-value")
        if isinstance(value, list) and len(value) != c.rotated // 2:
            raise BadInput(
                f"{key} has {len(value)} numbers, but the rotary size needs {c.rotated // 2}", code="bad-value"
            )


def rotate(x: Tensor, by: Rotation) -> Tensor:
    """Rotate heads (B, H, T, h); channels that are not rotated pass through."""
    cos, sin = by.cos.to(x.dtype), by.sin.to(x.dtype)
    turned, rest = x.split((cos.shape[-1], x.shape[-1] - cos.shape[-1]), dim=-1)
    first, second = turned.chunk(2, dim=-1)  # Hugging Face pairs channel i with i + half, the paper pairs neighbours
    turned = turned * cos + torch.cat((-second, first), dim=-1) * sin
    return turned if rest.shape[-1] == 0 else torch.cat((turned, rest), dim=-1)


def _frequencies(c: DecoderConfig, rope: Rope, positions: Tensor) -> tuple[Tensor, float]:
    """Return radians per token of each channel pair, and a factor for cosine and sine."""
    return _SCALINGS[rope.scaling.get("rope_type", "default")](c, rope, positions)


def _plain(theta: float | Tensor, size: int, device: torch.device) -> Tensor:
    return 1.0 / theta ** (torch.arange(0, size, 2, device=device).float() / size)


def _default(c: DecoderConfig, rope: Rope, positions: Tensor) -> tuple[Tensor, float]:
    return _plain(rope.theta, c.rotated, positions.device), 1.0


def _linear(c: DecoderConfig, rope: Rope, positions: Tensor) -> tuple[Tensor, float]:
    """Divide every position.

    Chen et al. 2023, "Extending Context Window … via Positional Interpolation".
    """
    return _plain(rope.theta, c.rotated, positions.device) / rope.scaling["factor"], 1.0


def _dynamic(c: DecoderConfig, rope: Rope, positions: Tensor) -> tuple[Tensor, float]:
    """Increase theta for sequences longer than the training context (NTK-aware scaling)."""
    factor, size = rope.scaling["factor"], c.rotated
    grown = factor * (positions.max() + 1).clamp(min=c.context) / c.context - (factor - 1)
    return _plain(rope.theta * grown ** (size / (size - 2)), size, positions.device), 1.0


def _llama3(c: DecoderConfig, rope: Rope, positions: Tensor) -> tuple[Tensor, float]:
    """Divide low frequencies, keep high ones, blend those in between (Llama 3.1)."""
    says = rope.scaling
    plain, made_for = _plain(rope.theta, c.rotated, positions.device), says["original_max_position_embeddings"]
    turns = made_for * plain / (2 * math.pi)  # rotations within the original context
    low, high = says["low_freq_factor"], says["high_freq_factor"]
    kept = ((turns - low) / (high - low)).clamp(0, 1)
    return plain * kept + plain / says["factor"] * (1 - kept), 1.0


def _yarn(c: DecoderConfig, rope: Rope, positions: Tensor) -> tuple[Tensor, float]:
    """Blend frequencies by a ramp over channels; scale the scores (Peng et al. 2023, "YaRN")."""
    says, size = rope.scaling, c.rotated
    made_for = says["original_max_position_embeddings"]
    stretch = says.get("factor") or c.context / made_for

    def channel(turns: float) -> float:  # channel that makes `turns` rotations in the original context
        return size * math.log(made_for / (turns * 2 * math.pi)) / (2 * math.log(rope.theta))

    first, last = channel(says.get("beta_fast") or 32), channel(says.get("beta_slow") or 1)
    if says.get("truncate", True):
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, size - 1)
    ramp = (torch.arange(size // 2, device=positions.device).float() - first) / ((last - first) or 0.001)
    kept = 1 - ramp.clamp(0, 1)
    plain = _plain(rope.theta, size, positions.device)

    def sharpened(by: float = 1.0) -> float:
        return 0.1 * by * math.log(stretch) + 1.0 if stretch > 1 else 1.0

    factor = says.get("attention_factor")
    if factor is None:
        one, other = says.get("mscale"), says.get("mscale_all_dim")
        factor = sharpened(one) / sharpened(other) if one and other else sharpened()
    return plain * kept + plain / stretch * (1 - kept), factor


def _longrope(c: DecoderConfig, rope: Rope, positions: Tensor) -> tuple[Tensor, float]:
    """Divide each frequency by a short or a long factor (Ding et al. 2024, "LongRoPE"; Phi-3)."""
    says = rope.scaling
    made_for = says["original_max_position_embeddings"]
    stretch = says.get("factor") or c.context / made_for
    factor = says.get("attention_factor")
    if factor is None:
        factor = math.sqrt(1 + math.log(stretch) / math.log(made_for)) if stretch > 1 else 1.0
    short, long = (positions.new_tensor(says[key], dtype=torch.float32) for key in ("short_factor", "long_factor"))
    each = torch.where(positions.max() + 1 > made_for, long, short)
    return _plain(rope.theta, c.rotated, positions.device) / each, factor


_SCALINGS = {
    "default": _default,
    "linear": _linear,
    "dynamic": _dynamic,
    "llama3": _llama3,
    "yarn": _yarn,
    "longrope": _longrope,
}
_NEEDS = {
    "linear": ("factor",),
    "dynamic": ("factor",),
    "llama3": ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"),
    "yarn": ("original_max_position_embeddings",),
    "longrope": ("original_max_position_embeddings", "short_factor", "long_factor"),
}
