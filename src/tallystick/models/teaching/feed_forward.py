"""An MLP, and two language models with one between embedding and head."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor, nn
from torch.nn import functional as F

from tallystick.errors import BadInput


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


class PositionWiseLM(nn.Module):
    """An embedding, an MLP applied to each position alone, and a head.

    It predicts from the last token, as `BareBonesLM` does, with something to compute in between.

    Args:
        vocab_size: words in the vocabulary, V.
        d_model: width of the embedding, d; the MLP returns to it.
        width: of each hidden layer.
        depth: number of hidden layers.
        bias: whether the head has a bias (V); the MLP's layers have theirs.
        tie_word_embeddings: whether head and embedding share one weight.

    >>> model = PositionWiseLM(256, d_model=5, width=16)
    >>> sum(p.numel() for p in model.parameters())  # 256 * 5 + (5 * 16 + 16) + (16 * 5 + 5)
    1461
    """

    embedding: nn.Embedding  # weight (V, d)
    mlp: MLP
    head: nn.Linear  # weight (V, d)

    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        width: int,
        depth: int = 1,
        *,
        bias: bool = False,
        tie_word_embeddings: bool = True,
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.mlp = MLP.of_depth(d_model, width, depth, d_model)
        self.head = nn.Linear(d_model, vocab_size, bias=bias)
        if tie_word_embeddings:
            self.head.weight = self.embedding.weight

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.mlp(self.embedding(tokens)))  # (B, T) -> (B, T, d) -> (B, T, V)
