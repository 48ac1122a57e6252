"""One kind of matrix product and its FLOPs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Product:
    """Matrix products of one kind, summed over all layers."""

    part: str  # one of compute.PARTS
    what: str  # the weight's name, with {} for layer numbers, or the two factors
    forward_flops: int
    backward_flops: int  # for the gradients of both factors, as far as training needs them
    needed_flops: int  # the part of forward_flops that the result depends on: causal mask and windows discard the rest
    formula: str  # of forward_flops, in numbers
    source: str = ""  # of the formula
