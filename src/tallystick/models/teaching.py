"""Teaching models: from an embedding with a head to a transformer, as small as possible.

Constructor arguments are the config keys of each blueprint (``architectures/teaching.py``), and
tensor names are the blueprint's. So `count` and `formula` of
``{"model_type": "transformer_lm", ...}`` hold for ``TransformerLM(...)``. The models are for
reading and counting, not for training anything large.

Letters in shapes: B sequences of T tokens, V words in the vocabulary, d the width of the model,
H heads of size h.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tallystick.errors import BadInput

__all__ = [
    "MLP",
    "BareBonesLM",
    "FeedForwardLM",
    "MultiHeadAttention",
    "RotaryTransformerLM",
    "SingleHeadAttention",
    "TransformerLM",
    "TransformerLayer",
]  # fmt: skip


class BareBonesLM(nn.Module):
    """An embedding and a linear head: predicts from the last token (bigram of rank `d_model`).

    If tied, the head's weight is the embedding's, and only the bias is the head's own.

    Args:
        vocab_size: words in the vocabulary, V.
        d_model: width of the embedding, d.
        bias: whether the head has a bias (V).
        tie_word_embeddings: whether head and embedding share one weight.

    >>> tied = BareBonesLM(50, 4, tie_word_embeddings=True)
    >>> sum(p.numel() for p in tied.parameters())  # 50 * 4 + 50
    250
    >>> tied(torch.tensor([[1, 2, 3]])).shape
    torch.Size([1, 3, 50])
    """

    embedding: nn.Embedding  # weight (V, d)
    head: nn.Linear  # weight (V, d), bias (V)

    def __init__(self, vocab_size: int, d_model: int, *, bias: bool = True, tie_word_embeddings: bool = False) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.head = nn.Linear(d_model, vocab_size, bias=bias)
        if tie_word_embeddings:
            self.head.weight = self.embedding.weight

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.embedding(tokens))  # (B, T) -> (B, T, d) -> (B, T, V)


class MLP(nn.Module):
    """Linear layers with ReLU in between.

    Args:
        widths: widths of the input, of each hidden layer, and of the output.
        bias: whether each layer has a bias.

    Raises:
        BadInput: if there are fewer than two widths.

    >>> sum(p.numel() for p in MLP([3, 8, 2]).parameters())  # 3 * 8 + 8 + 8 * 2 + 2
    50
    """

    layers: nn.ModuleList

    def __init__(self, widths: Sequence[int], *, bias: bool = True) -> None:
        super().__init__()
        if len(widths) < 2:
            raise BadInput(
                f"widths is {list(widths)}: an MLP needs an input width and an output width",
                code="bad-value",
            )
        self.layers = nn.ModuleList(nn.Linear(inputs, outputs, bias=bias) for inputs, outputs in pairwise(widths))

    @classmethod
    def of_depth(cls, inputs: int, width: int, depth: int, outputs: int, *, bias: bool = True) -> MLP:
        """Return an MLP with `depth` hidden layers of one `width`.

        Args:
            inputs: width of the input.
            width: of each hidden layer.
            depth: number of hidden layers.
            outputs: width of the output.
            bias: whether each layer has a bias.

        >>> [tuple(layer.weight.shape) for layer in MLP.of_depth(3, 8, 2, 5).layers]
        [(8, 3), (8, 8), (5, 8)]
        """
        return cls([inputs, *[width] * depth, outputs], bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        *hidden, last = self.layers
        for layer in hidden:
            x = F.relu(layer(x))  # (..., width before) -> (..., width after)
        return last(x)


class FeedForwardLM(nn.Module):
    """The last `context_length` embeddings, concatenated, into an MLP (Bengio 2003).

    Args:
        vocab_size: words in the vocabulary, V.
        context_length: tokens that the MLP sees.
        d_model: width of the embedding, d.
        width: of each hidden layer.
        depth: number of hidden layers.
        bias: whether each layer has a bias.

    >>> model = FeedForwardLM(50, context_length=3, d_model=4, width=8)
    >>> sum(p.numel() for p in model.parameters())  # 50 * 4 + (3 * 4 * 8 + 8) + (8 * 50 + 50)
    754
    """

    embedding: nn.Embedding  # weight (V, d)
    mlp: MLP

    def __init__(
        self, vocab_size: int, context_length: int, d_model: int, width: int, depth: int = 1, *, bias: bool = True
    ) -> None:
        super().__init__()
        self.context_length = context_length
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.mlp = MLP.of_depth(context_length * d_model, width, depth, vocab_size, bias=bias)

    def forward(self, tokens: Tensor) -> Tensor:
        x = F.pad(self.embedding(tokens), (0, 0, self.context_length - 1, 0))  # zeros before the first token
        windows = x.unfold(1, self.context_length, 1)  # (B, T, d, context_length): one window per token
        return self.mlp(windows.transpose(2, 3).flatten(2))  # (B, T, context_length * d) -> (B, T, V)


def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Return causal attention: means of the values up to each position, weighted by the scores.

    Args:
        query: (..., T, h).
        key: (..., T, h).
        value: (..., T, h).

    Returns:
        (..., T, h).

    >>> x = torch.tensor([[1.0], [3.0]])  # two tokens of width 1
    >>> attend(torch.zeros(2, 1), x, x)  # equal scores: the mean of what has come
    tensor([[1.],
            [2.]])
    """
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])  # (..., T, T)
    future = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
    return scores.masked_fill(future, -math.inf).softmax(-1) @ value


def rotated(x: Tensor) -> Tensor:
    """Rotate queries or keys by their positions: RoPE has no parameters.

    Args:
        x: (..., T, h), with an even h.

    Returns:
        (..., T, h).

    >>> rotated(torch.ones(1, 4))  # the first token is not rotated
    tensor([[1., 1., 1., 1.]])
    """
    length, size = x.shape[-2:]
    frequencies = 10_000.0 ** -torch.arange(0, 1, 2 / size, device=x.device)[: size // 2]  # (h / 2)
    angles = torch.arange(length, device=x.device)[:, None] * frequencies  # (T, h / 2)
    first, second = x.chunk(2, dim=-1)  # feature i is paired with feature i + h / 2
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    return torch.cat((first * cos - second * sin, first * sin + second * cos), dim=-1)


class SingleHeadAttention(nn.Module):
    """One head of causal self-attention without biases.

    Args:
        d_model: width of the model, d.
        d_head: size of the head, h.

    >>> sum(p.numel() for p in SingleHeadAttention(8, 4).parameters())  # 3 * 8 * 4
    96
    """

    query: nn.Linear  # weight (h, d)
    key: nn.Linear  # weight (h, d)
    value: nn.Linear  # weight (h, d)

    def __init__(self, d_model: int, d_head: int) -> None:
        super().__init__()
        self.query = nn.Linear(d_model, d_head, bias=False)
        self.key = nn.Linear(d_model, d_head, bias=False)
        self.value = nn.Linear(d_model, d_head, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return attend(self.query(x), self.key(x), self.value(x))  # (B, T, d) -> (B, T, h)


class MultiHeadAttention(nn.Module):
    """`n_heads` heads of size ``d_model / n_heads`` and an output projection, without biases.

    The number of heads changes no shape, so it does not change the count.

    Args:
        d_model: width of the model, d.
        n_heads: heads, H; they divide the width.
        rotary: whether queries and keys are rotated by their positions.

    Raises:
        BadInput: if the heads do not divide the width.

    >>> sum(p.numel() for p in MultiHeadAttention(8, 2).parameters())  # 4 * 8 * 8
    256
    """

    n_heads: int
    rotary: bool
    query: nn.Linear  # weight (d, d)
    key: nn.Linear  # weight (d, d)
    value: nn.Linear  # weight (d, d)
    output: nn.Linear  # weight (d, d)

    def __init__(self, d_model: int, n_heads: int, *, rotary: bool = False) -> None:
        super().__init__()
        if d_model % n_heads:
            raise BadInput(f"d_model = {d_model} is not divisible by n_heads = {n_heads}", code="indivisible")
        if rotary and d_model // n_heads % 2:
            raise BadInput(
                f"d_model / n_heads = {d_model // n_heads} is odd: rotary embedding needs an even head size",
                code="indivisible",
            )
        self.n_heads, self.rotary = n_heads, rotary
        self.query = nn.Linear(d_model, d_model, bias=False)
        self.key = nn.Linear(d_model, d_model, bias=False)
        self.value = nn.Linear(d_model, d_model, bias=False)
        self.output = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        def heads(projected: Tensor) -> Tensor:
            return projected.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)  # (B, T, d) -> (B, H, T, h)

        query, key, value = heads(self.query(x)), heads(self.key(x)), heads(self.value(x))
        if self.rotary:
            query, key = rotated(query), rotated(key)
        return self.output(attend(query, key, value).transpose(1, 2).flatten(2))  # (B, H, T, h) -> (B, T, d)


class TransformerLayer(nn.Module):
    """Attention, then an MLP with one hidden layer; a LayerNorm after each, no residuals.

    Args:
        d_model: width of the model, d.
        n_heads: heads, H; they divide the width.
        d_ff: width of the hidden layer; None is four times `d_model`.
        rotary: whether queries and keys are rotated by their positions.

    Raises:
        BadInput: if the heads do not divide the width.

    >>> layer = TransformerLayer(8, 2)
    >>> sum(p.numel() for p in layer.parameters())  # 4 * 8 * 8 + (8 * 32 + 32 + 32 * 8 + 8) + 4 * 8
    840
    """

    attention: MultiHeadAttention
    attention_norm: nn.LayerNorm  # weight (d), bias (d)
    mlp: MLP
    mlp_norm: nn.LayerNorm  # weight (d), bias (d)

    def __init__(self, d_model: int, n_heads: int, d_ff: int | None = None, *, rotary: bool = False) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(d_model, n_heads, rotary=rotary)
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
        n_heads: heads of each layer, H; they divide the width.
        d_ff: width of each MLP's hidden layer; None is four times `d_model`.
        bias: whether the head has a bias.
        tie_word_embeddings: whether head and token embedding share one weight.

    Raises:
        BadInput: if the heads do not divide the width.

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
        bias: bool = False,
        tie_word_embeddings: bool = False,
    ) -> None:
        super().__init__()
        self.context_length = context_length
        self.token_embedding = nn.Embedding(vocab_size, d_model)
        self.position_embedding = nn.Embedding(context_length, d_model)
        self.layers = nn.ModuleList(TransformerLayer(d_model, n_heads, d_ff) for _ in range(n_layers))
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
        n_heads: heads of each layer, H; they divide the width.
        d_ff: width of each MLP's hidden layer; None is four times `d_model`.
        bias: whether the head has a bias.
        tie_word_embeddings: whether head and token embedding share one weight.

    Raises:
        BadInput: if the heads do not divide the width, or into odd parts.

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
        bias: bool = False,
        tie_word_embeddings: bool = False,
    ) -> None:
        super().__init__()
        self.token_embedding = nn.Embedding(vocab_size, d_model)
        self.layers = nn.ModuleList(TransformerLayer(d_model, n_heads, d_ff, rotary=True) for _ in range(n_layers))
        self.head = nn.Linear(d_model, vocab_size, bias=bias)
        if tie_word_embeddings:
            self.head.weight = self.token_embedding.weight

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.token_embedding(tokens)  # (B, T, d)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)  # (B, T, V)
