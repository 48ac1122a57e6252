"""Models that hold a vocabulary and nothing else: an embedding, alone and with a head."""

from __future__ import annotations

from torch import Tensor, nn


class Embedding(nn.Embedding):
    """A vector of `d_model` numbers for each word: a table, and nothing else.

    Args:
        vocab_size: words in the vocabulary, V.
        d_model: width of the embedding, d.

    >>> sum(p.numel() for p in Embedding(256, 5).parameters())  # 256 * 5
    1280
    """

    def __init__(self, vocab_size: int, d_model: int) -> None:
        super().__init__(vocab_size, d_model)  # weight (V, d)


class BareBonesLM(nn.Module):
    """An embedding and a linear head: predicts from the last token (bigram of rank `d_model`).

    If tied, the head's weight is the embedding's, and only the bias is the head's own.

    Args:
        vocab_size: words in the vocabulary, V.
        d_model: width of the embedding, d.
        bias: whether the head has a bias (V).
        tie_word_embeddings: whether head and embedding share one weight.

    >>> import torch
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
