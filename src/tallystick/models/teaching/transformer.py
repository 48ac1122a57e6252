"""A transformer layer, and language models of such layers, with learned or rotary positions."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tallystick.errors import BadInput
from tallystick.models.teaching.attention import MultiHeadAttention
from tallystick.models.teaching.feed_forward import MLP


class TransformerLayer(nn.Module):
    """Attention, then an MLP with one hidden layer; a LayerNorm after each, no residuals.

    Args:
        d_model: width of the model, d.
        n_heads: heads, H.
        d_ff: width of the hidden layer; None is four times `d_model`.
        head_dim: size of a head, h; None is ``d_model / n_heads``.
        rotary: whether queries and keys are rotated by their positions.

    Raises:
        BadInput: if the heads do not divide the width, and `head_dim` is None.

    >>> layer = TransformerLayer(8, 2)
    >>> sum(p.numel() for p in layer.parameters())  # 4 * 8 * 8 + (8 * 32 + 32 + 32 * 8 + 8) + 4 * 8
    840
    """

    attention: MultiHeadAttention
    attention_norm: nn.LayerNorm  # weight (d), bias (d)
    mlp: MLP
    mlp_norm: nn.LayerNorm  # weight (d), bias (d)

    def __init__(
        self, d_model: int, n_heads: int, d_ff: int | None = None, *, head_dim: int | None = None, rotary: bool = False
    ) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(d_model, n_heads, head_dim, rotary=rotary)
        self.attention_norm = nn.LayerNorm(d_model)
        self.mlp = MLP([d_model, d_ff or 4 * d_model, d_model])
        self.mlp_norm = nn.LayerNorm(d_model)

    def forward(self, x: Tensor) -> Tensor:
        x = self.attention_norm(self.attention(x))  # (B, T, d)
        return self.mlp_norm(self.mlp(x))


class TransformerLM(nn.Module):
    """Token and learned position embeddings, added; transformer layers; a head.

    Args:
        vocab_size: words in the vocabulary, V.
        context_length: most tokens of a sequence: rows of the position embedding.
        d_model: width of the model, d.
        n_layers: transformer layers.
        n_heads: heads of each layer, H.
        d_ff: width of each MLP's hidden layer; None is four times `d_model`.
        head_dim: size of a head, h; None is ``d_model / n_heads``.
        bias: whether the head has a bias.
        tie_word_embeddings: whether head and token embedding share one weight.

    Raises:
        BadInput: if the heads do not divide the width, and `head_dim` is None.

    >>> model = TransformerLM(50, context_length=6, d_model=8, n_layers=2, n_heads=2)
    >>> sum(p.numel() for p in model.parameters())  # 50 * 8 + 6 * 8 + 2 * 840 + 8 * 50
    2528
    """

    context_length: int
    token_embedding: nn.Embedding  # weight (V, d)
    position_embedding: nn.Embedding  # weight (context_length, d)
    layers: nn.ModuleList
    head: nn.Linear  # weight (V, d)

    def __init__(
        self,
        vocab_size: int,
        context_length: int,
        d_model: int,
        n_layers: int,
        n_heads: int,
        d_ff: int | None = None,
        *,
        head_dim: int | None = None,
        bias: bool = False,
        tie_word_embeddings: bool = False,
    ) -> None:
        super().__init__()
        self.context_length = context_length
        self.token_embedding = nn.Embedding(vocab_size, d_model)
        self.position_embedding = nn.Embedding(context_length, d_model)
        self.layers = nn.ModuleList(
            TransformerLayer(d_model, n_heads, d_ff, head_dim=head_dim) for _ in range(n_layers)
        )
        self.head = nn.Linear(d_model, vocab_size, bias=bias)
        if tie_word_embeddings:
            self.head.weight = self.token_embedding.weight

    def forward(self, tokens: Tensor) -> Tensor:
        length = tokens.shape[1]
        if length > self.context_length:
            raise BadInput(f"{length} tokens are more than context_length = {self.context_length}", code="bad-value")
        positions = torch.arange(length, device=tokens.device)
        x = self.token_embedding(tokens) + self.position_embedding(positions)  # (B, T, d)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)  # (B, T, V)


class RotaryTransformerLM(nn.Module):
    """`TransformerLM` with RoPE: no position embedding, and no limit on the sequence length.

    Args:
        vocab_size: words in the vocabulary, V.
        d_model: width of the model, d.
        n_layers: transformer layers.
        n_heads: heads of each layer, H.
        d_ff: width of each MLP's hidden layer; None is four times `d_model`.
        head_dim: size of a head, h; None is ``d_model / n_heads``.
        bias: whether the head has a bias.
        tie_word_embeddings: whether head and token embedding share one weight.

    Raises:
        BadInput: if the heads do not divide the width and `head_dim` is None; if their size is odd.

    >>> model = RotaryTransformerLM(50, d_model=8, n_layers=2, n_heads=2)
    >>> sum(p.numel() for p in model.parameters())  # 50 * 8 + 2 * 840 + 8 * 50
    2480
    """

    token_embedding: nn.Embedding  # weight (V, d)
    layers: nn.ModuleList
    head: nn.Linear  # weight (V, d)

    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        n_layers: int,
        n_heads: int,
        d_ff: int | None = None,
        *,
        head_dim: int | None = None,
        bias: bool = False,
        tie_word_embeddings: bool = False,
    ) -> None:
        super().__init__()
        self.token_embedding = nn.Embedding(vocab_size, d_model)
        self.layers = nn.ModuleList(
            TransformerLayer(d_model, n_heads, d_ff, head_dim=head_dim, rotary=True) for _ in range(n_layers)
        )
        self.head = nn.Linear(d_model, vocab_size, bias=bias)
        if tie_word_embeddings:
            self.head.weight = self.token_embedding.weight

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.token_embedding(tokens)  # (B, T, d)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)  # (B, T, V)
