"""Matrix products of one kind."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Product:
    """Matrix products of one kind, in all layers."""

    part: str  # one of compute.PARTS
    what: str  # the weight's name, with {} for the layers' numbers, or what is multiplied
    forward_flops: int
    backward_flops: int  # for the gradients of both factors, as far as training wants them
    needed_flops: int  # of forward_flops those that the result depends on: a causal mask and windows discard the rest
    formula: str  # of forward_flops, in numbers
    source: str = ""  # where the formula is from
