"""FLOPs of the products with weights: one line for each matrix."""

from __future__ import annotations

import re

from tallystick.answers.compute.gradients import Gradients
from tallystick.answers.compute.products import Product
from tallystick.answers.parts import kind_of
from tallystick.core.entries import Entry
from tallystick.core.tensor_names import template_of

KAPLAN = "Kaplan et al. 2020, Scaling Laws for Neural Language Models, section 2.1"

_PART_OF = {"token_embedding": "embedding", "position_embedding": "embedding", "attention": "attention_projections"}
_LOOKED_UP = "embedding"

# Embeddings that are added to the attention values.
_BY_ROW = re.compile(r"(^|\.)value_embed")

# Tensors with several axes that are added or multiplied elementwise, not in a matrix product.
_BY_ELEMENT = re.compile(r"(^|\.)(A_log|D|time_mix_\w+|\w+_l2_clip\.scale|attention\.[uv])$")


def weight_products(gradients: Gradients, batch: int, sequence: int) -> list[Product]:
    """Return one product per matrix; single layers of a live module are summed.

    Args:
        gradients: the parameters that are multiplied, and which of them are trained.
        batch: sequences per pass.
        sequence: tokens per sequence.
    """
    tokens = batch * sequence
    found: dict[tuple[str, tuple[int, ...]], list[tuple[Entry, int]]] = {}
    for place, entry in enumerate(gradients.entries):
        if kind_of(entry) == "matrix" and not _BY_ELEMENT.search(entry.name):
            template = entry.name if entry.axes else template_of(entry.name)[0]
            found.setdefault((template, entry.shape), []).append((entry, gradients.of(place)))
    products = []
    for (template, shape), stack in found.items():
        entry, copies = stack[0][0], sum(entry.copies for entry, _ in stack)
        part = _LOOKED_UP if _BY_ROW.search(template) else _PART_OF.get(entry.role, entry.role)
        if part == _LOOKED_UP:
            products.append(Product(part, template, 0, 0, 0, "0: rows are looked up", KAPLAN))
            continue
        # A causal convolution pads the end by kernel - 1 positions and discards their outputs.
        read = tokens + batch * (int(shape[-1]) - 1) if part == "conv" else tokens
        flops = [int(2 * read * entry.size * entry.copies * (entry.active or 1)) for entry, _ in stack]
        backward = sum(count * times for count, (_, times) in zip(flops, stack, strict=True))
        factors = ["2", f"{read:,} tokens", *([f"{copies:,}"] if copies > 1 else [])]
        factors += [f"{int(dim):,}" for dim in shape]
        if entry.active is not None:
            factors.append(f"{entry.active} of the experts" if part == "experts" else f"{entry.active} of them")
        needed = sum(flops) // read * tokens
        products.append(Product(part, template, sum(flops), backward, needed, " × ".join(factors), KAPLAN))
    return products
