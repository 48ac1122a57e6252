"""What a decoder is made of: every choice that the families differ in, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tallystick.core.dims import Dim
from tallystick.errors import BadInput


@dataclass(frozen=True)
class Rope:
    """Rotary positions (Su et al. 2021): how fast each pair of channels turns.

    `scaling` is Hugging Face's ``rope_type`` and what belongs to it; empty is the plain rotation.
    """

    theta: float = 10000.0
    share: float = 1.0  # of a head's channels that turn; the rest carry no position
    scaling: Mapping[str, Any] = field(default_factory=dict)
    backwards: bool = False  # turned the other way round, as nanochat does


@dataclass(frozen=True)
class Experts:
    """A sparse MLP: each token goes through `used` of `count` experts of width `inner`."""

    count: int
    used: int
    inner: int
    normalised: bool = True  # whether the weights of the chosen experts are made to sum to one


@dataclass(frozen=True)
class DecoderConfig:
    """A decoder, choice by choice. The defaults are those of a Llama; ``None`` means that a part is absent.

    A family (``models/families/``) reads one from a Hugging Face config, which is kept as `origin` for saving.
    """

    vocab_size: int
    width: int
    layers: int
    heads: int
    inner: int  # the width of the MLP
    context: int  # positions that the model was made for
    kv_heads: int | None = None  # as many as heads
    head_dim: int | None = None  # the width shared out among the heads

    # Norms. `norm_place` says what of a sublayer is normalised: its input, its output, or both.
    norm: Literal["layer", "rms"] = "rms"
    norm_place: Literal["before", "after", "both"] = "before"
    norm_scale: bool = True
    norm_bias: bool = False
    norm_offset: float = 0.0  # added to the scale: Gemma stores what differs from one
    norm_rounds_last: bool = False  # to the model's dtype after scaling, as Gemma and OLMo 2 do, not before
    norm_eps: float = 1e-6
    embedding_norm: bool = False
    final_norm: bool = True
    parallel: bool = False  # attention and MLP side by side on one input, behind one norm

    # Attention.
    rope: Rope | None = field(default_factory=Rope)  # None: learned positions
    windows: tuple[int | None, ...] = ()  # how far each layer sees, itself included; () and None: everything
    qkv_bias: bool = False
    output_bias: bool = False
    qk_norm: Literal["head", "all", "turned"] | None = None  # each head, all at once, or each without scale after rope
    attention_scale: float | None = None  # of scores: 1/√head_dim
    attention_cap: float | None = None  # scores are squashed into ± this by a tanh

    # MLP.
    activation: str = "silu"
    gated: bool = True
    mlp_bias: bool = False
    experts: Experts | None = None
    dense_layers: frozenset[int] = frozenset()  # with experts: the layers that have a plain MLP all the same

    # Embedding and head.
    tied: bool = False
    embedding_scale: float = 1.0
    logit_scale: float = 1.0
    logit_cap: float | None = None

    # Training.
    dropout: float = 0.0  # of what each sublayer adds
    embedding_dropout: float = 0.0
    attention_dropout: float = 0.0
    init_std: float | None = 0.02  # None: 1/√inputs, and 1 for the embedding (PaLM, section 5)

    origin: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        for name, value in vars(self).items():  # a size that remembers its key is no business of torch's
            if isinstance(value, Dim):
                object.__setattr__(self, name, int(value))
        for one, by in (("width", "heads"), ("heads", "kv_heads")):
            if by == "heads" and self.head_dim is not None:
                continue
            if getattr(self, one) % (getattr(self, by) or 1):
                raise BadInput(
                    f"{one} {getattr(self, one)} is not divisible by {by} {getattr(self, by)}", code="indivisible"
                )
        if self.windows and len(self.windows) != self.layers:
            raise BadInput(
                f"windows says how far {len(self.windows)} layers see, and there are {self.layers}", code="bad-value"
            )
        if self.rope is not None and self.rotated % 2:
            raise BadInput(
                f"rotary positions turn pairs of channels, and {self.rotated} of a head are to turn", code="bad-value"
            )

    @property
    def model_type(self) -> str:
        """The family that it was read by; empty where it was written by hand."""
        return str(self.origin.get("model_type", ""))

    @property
    def head_size(self) -> int:
        """Channels of one head."""
        return self.head_dim or self.width // self.heads

    @property
    def kv_count(self) -> int:
        """Heads of keys and of values."""
        return self.kv_heads or self.heads

    @property
    def rotated(self) -> int:
        """Channels of one head that turn with the position."""
        return int(self.head_size * self.rope.share) if self.rope else 0

    def window(self, layer: int) -> int | None:
        """How far a layer sees, itself included; None is everything."""
        return self.windows[layer] if self.windows else None
