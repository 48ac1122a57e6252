"""Neighbourhoods of tokens: whether two matrices give a token the same nearest tokens.

Cosines of rows of two matrices mean nothing: each matrix may be turned as a whole. Which rows
are near each other within one matrix survives any turn.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from tallystick.models.tokens import Tokenizer

NEAREST = 10  # neighbours of a token


def nearest(matrix: Tensor, k: int = NEAREST) -> Tensor:
    """Return each row's nearest other rows by cosine, around the rows' mean.

    Args:
        matrix: (rows, d).
        k: neighbours of a row; fewer if there are fewer rows.

    Returns:
        Indices, (rows, k).

    >>> nearest(torch.tensor([[1.0, 0.0], [1.0, 0.1], [-1.0, 0.0], [-1.0, 0.1]]), k=1).tolist()
    [[1], [0], [3], [2]]
    """
    rows = nn.functional.normalize(matrix.detach().float() - matrix.detach().float().mean(0))
    likeness = (rows @ rows.T).fill_diagonal_(-torch.inf)
    return likeness.topk(min(k, len(rows) - 1)).indices


def agreement(one: Tensor, other: Tensor) -> float:
    """Return the mean share of neighbours that two neighbourhoods of each row have in common.

    Args:
        one: indices, (rows, k).
        other: indices of another matrix, (rows, k).

    >>> agreement(torch.tensor([[1, 2]]), torch.tensor([[2, 3]]))
    0.5
    """
    return float((one[:, :, None] == other[:, None, :]).any(2).float().mean())


def alike(tokenizer: Tokenizer, ids: Sequence[int]) -> list[tuple[int, int]]:
    """Return the ordered pairs of words that differ in case or in space around them alone.

    Args:
        tokenizer: the tokenizer of the ids.
        ids: tokens to pair.

    Returns:
        Pairs of places in `ids`.

    >>> bytes_ = Tokenizer.bytes()
    >>> alike(bytes_, [ord("a"), ord("b"), ord("A")])
    [(0, 2), (2, 0)]
    """
    places: dict[str, list[int]] = {}
    for place, token in enumerate(ids):
        word = tokenizer.decode([token]).strip()
        if word.isalpha():
            places.setdefault(word.casefold(), []).append(place)
    return [(one, other) for group in places.values() for one in group for other in group if one != other]


def near(neighbours: Tensor, pairs: Sequence[tuple[int, int]]) -> float:
    """Return the share of pairs whose second is among the first's neighbours.

    Args:
        neighbours: indices, (rows, k).
        pairs: pairs of rows; without any the share is NaN.

    >>> near(torch.tensor([[1], [2], [0]]), [(0, 1), (1, 0)])
    0.5
    """
    found = [bool((neighbours[one] == other).any()) for one, other in pairs]
    return sum(found) / len(found) if found else float("nan")
