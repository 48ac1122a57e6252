"""The decoder config: every choice in which model families differ, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tallystick.core.algebra.dims import Dim
from tallystick.errors import BadInput


@dataclass(frozen=True)
class Rope:
    """Rotary position embeddings (Su et al. 2021).

    `scaling` holds Hugging Face's ``rope_type`` and its parameters; empty is plain RoPE.
    """

    theta: float = 10000.0
    share: float = 1.0  # share of a head's channels that are rotated
    scaling: Mapping[str, Any] = field(default_factory=dict)
    backwards: bool = False  # opposite direction of rotation, as in nanochat


@dataclass(frozen=True)
class Experts:
    """A mixture of experts: each token uses `used` of `count` experts of width `inner`."""

    count: int
    used: int
    inner: int
    normalised: bool = True  # whether the weights of a token's experts are rescaled to sum to 1


@dataclass(frozen=True)
class DecoderConfig:
    """The hyperparameters of a decoder; the defaults are Llama's, ``None`` means no such part.

    A family (``models/families/``) builds it from a Hugging Face config, kept as `origin`.

    Raises:
        BadInput: if sizes do not divide each other, or the windows are not one for each layer.

    >>> config = DecoderConfig(vocab_size=50, width=8, layers=2, heads=2, inner=32, context=16)
    >>> config.head_size, config.kv_count, config.tied
    (4, 2, False)
    """

    vocab_size: int
    width: int
    layers: int
    heads: int
    inner: int  # the width of the MLP
    context: int  # positions (tokens) that the model was trained for
    kv_heads: int | None = None  # None: equal to heads
    head_dim: int | None = None  # None: width / heads

    # Norms. `norm_place`: whether a sublayer's input, its output, or both are normalised.
    norm: Literal["layer", "rms"] = "rms"
    norm_place: Literal["before", "after", "both"] = "before"
    norm_scale: bool = True
    norm_bias: bool = False
    norm_offset: float = 0.0  # added to the stored scale: Gemma stores scale - 1
    norm_rounds_last: bool = False  # round to the model's dtype after scaling (Gemma, OLMo 2), not before
    norm_eps: float = 1e-6
    embedding_norm: bool = False
    final_norm: bool = True
    parallel: bool = False  # attention and MLP in parallel, after one norm

    # Attention.
    rope: Rope | None = field(default_factory=Rope)  # None: learned positions
    windows: tuple[int | None, ...] = ()  # sliding window of each layer, in tokens; () or None: unlimited
    qkv_bias: bool = False
    output_bias: bool = False
    qk_norm: Literal["head", "all", "turned"] | None = (
        None  # per head; over all heads; or per head without scale after RoPE
    )
    attention_scale: float | None = None  # factor of the scores; None: 1/√head_dim
    attention_cap: float | None = None  # scores are capped to ± this by a tanh

    # MLP.
    activation: str = "silu"
    gated: bool = True
    mlp_bias: bool = False
    experts: Experts | None = None
    dense_layers: frozenset[int] = frozenset()  # layers with a plain MLP although `experts` is set

    # Embedding and head.
    tied: bool = False
    embedding_scale: float = 1.0
    logit_scale: float = 1.0
    logit_cap: float | None = None

    # Training.
    dropout: float = 0.0  # on the output of each sublayer
    embedding_dropout: float = 0.0
    attention_dropout: float = 0.0
    init_std: float | None = 0.02  # None: 1/√inputs, and 1 for the embedding (PaLM, section 5)

    origin: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        for name, value in vars(self).items():  # torch needs plain ints
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
                f"windows has {len(self.windows)} entries, but there are {self.layers} layers", code="bad-value"
            )
        if self.rope is not None and self.rotated % 2:
            raise BadInput(
                f"rotary embedding needs an even number of channels per head, not {self.rotated}", code="bad-value"
            )

    @property
    def model_type(self) -> str:
        """The Hugging Face model type; empty if the config was written by hand."""
        return str(self.origin.get("model_type", ""))

    @property
    def head_size(self) -> int:
        """Channels of one head."""
        return self.head_dim or self.width // self.heads

    @property
    def kv_count(self) -> int:
        """Key-value heads."""
        return self.kv_heads or self.heads

    @property
    def rotated(self) -> int:
        """Channels of one head that are rotated."""
        return int(self.head_size * self.rope.share) if self.rope else 0

    def window(self, layer: int) -> int | None:
        """Return a layer's sliding window in tokens, its own included; None is unlimited.

        Args:
            layer: number of the layer, from 0.
        """
        return self.windows[layer] if self.windows else None
