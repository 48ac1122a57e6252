"""One decoder layer: attention and an MLP around the residual stream."""

from __future__ import annotations

from torch import Tensor, nn

from tallystick.models.cache import LayerCache
from tallystick.models.config import DecoderConfig
from tallystick.models.layers.attention import Attention, Sight
from tallystick.models.layers.mlp import MLP, SparseMLP
from tallystick.models.layers.norm import norm
from tallystick.models.layers.rotary import Rotation


class Block(nn.Module):
    """Attention, then the MLP; or both in parallel after one norm (PaLM, section 2)."""

    def __init__(self, c: DecoderConfig, layer: int) -> None:
        super().__init__()
        before, after = c.norm_place != "after", c.norm_place != "before"
        self.parallel = c.parallel
        self.attention_norm = norm(c) if before and not c.parallel else None
        self.attention = Attention(c)
        self.attention_out_norm = norm(c) if after else None
        self.mlp_norm = norm(c) if before and not c.parallel else None
        self.mlp = SparseMLP(c, c.experts) if c.experts and layer not in c.dense_layers else MLP(c)
        self.mlp_out_norm = norm(c) if after else None
        self.norm = norm(c) if c.parallel else None
        self.dropout = nn.Dropout(c.dropout)

    def forward(
        self, x: Tensor, turn: Rotation | None, sees: Sight, cache: LayerCache | None = None, start: int | Tensor = 0
    ) -> Tensor:
        """Add attention and MLP to the residual stream: (B, T, d) -> (B, T, d).

        Args:
            x: hidden states, (B, T, d).
            turn: the rotation of queries and keys; None without RoPE.
            sees: which keys each query may attend to.
            cache: the layer's KV cache.
            start: position of the first of the T tokens in the cache.
        """
        if self.norm is not None:
            y = self.norm(x)
            return x + self.dropout(self.attention(y, turn, sees, cache, start) + self.mlp(y))
        y = x if self.attention_norm is None else self.attention_norm(x)
        y = self.attention(y, turn, sees, cache, start)
        y = y if self.attention_out_norm is None else self.attention_out_norm(y)
        x = x + self.dropout(y)
        y = x if self.mlp_norm is None else self.mlp_norm(x)
        y = self.mlp(y)
        y = y if self.mlp_out_norm is None else self.mlp_out_norm(y)
        return x + self.dropout(y)
