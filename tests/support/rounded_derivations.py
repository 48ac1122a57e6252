"""Right derivations with rounded numbers: one layer, all layers and the rest."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import NamedTuple


class Part(NamedTuple):
    """A label, the formula of its number ("" for a number alone), and the number."""

    label: str
    formula: str
    value: int


class Model(NamedTuple):
    """What a text counts: the embeddings, the parts of one layer, and what follows the layers."""

    before: list[Part]
    layer: list[Part]
    layers: int
    after: list[Part]

    @property
    def one_layer(self) -> int:
        """The parameters of one layer."""
        return sum(part.value for part in self.layer)

    @property
    def total(self) -> int:
        """The parameters of the model."""
        return sum(part.value for part in (*self.before, *self.after)) + self.layers * self.one_layer


def drawn(chance: random.Random) -> tuple[Model, dict[str, int | str | bool]]:
    """A GPT-2 with sizes drawn at random, and its config."""
    d, layers = chance.choice((128, 256, 384, 640, 768, 1024, 1600)), chance.choice((2, 4, 6, 8, 12, 24, 36))
    vocab, positions = chance.choice((65, 256, 5000, 8192, 16384, 32000, 50257)), chance.choice((64, 256, 512, 1024))
    inner, tied = d * chance.choice((2, 4)), chance.random() < 0.5
    before = [
        Part(chance.choice(("Token embedding", "Embedding", "词嵌入")), f"{vocab} × {d}", vocab * d),
        Part(chance.choice(("Positions", "位置嵌入", "Positional embedding")), f"{positions} × {d}", positions * d),
    ]
    layer = [
        Part("Attention (Q, K, V, O)", f"4 × {d} × {d} + 4 × {d}", 4 * d * d + 4 * d),
        Part("MLP", f"2 × {d} × {inner} + {inner} + {d}", 2 * d * inner + inner + d),
        Part("LayerNorms", f"2 × 2 × {d}", 4 * d),
    ]
    after = [Part("Final LayerNorm", f"2 × {d}", 2 * d)]
    if not tied:
        after.append(Part("LM head", f"{d} × {vocab}", vocab * d))
    config = {"model_type": "gpt2", "vocab_size": vocab, "n_positions": positions, "n_embd": d, "n_layer": layers}
    return Model(before, layer, layers, after), config | {"n_inner": inner, "n_head": 4, "tie_word_embeddings": tied}


def exact(number: int) -> str:
    """124,439,808."""
    return f"{number:,}"


def rounded(number: int, digits: int = 2) -> str:
    """124.44M."""
    unit, letter = next((pair for pair in ((10**9, "B"), (10**6, "M"), (10**3, "K")) if number >= pair[0]), (1, ""))
    return f"{number / unit:.{digits}f}{letter}" if letter else str(number)


def roughly(number: int) -> str:
    """124.4M."""
    return rounded(number, 1)


def both(number: int) -> str:
    """124,439,808 (~124.4M)."""
    return f"{number:,} (~{roughly(number)})" if number >= 10**6 else exact(number)


NUMBERS: dict[str, Callable[[int], str]] = {"exact": exact, "rounded": rounded, "roughly": roughly, "both": both}


def written(model: Model, layout: str, number: Callable[[int], str]) -> str:
    """A derivation in one of `LAYOUTS`, with each number as `number` writes it."""
    factor = exact if number in (exact, both) else rounded  # "12 × 7.09M = 85.1M"
    each = Part("One layer", "", model.one_layer)
    times = f"{model.layers} × {factor(model.one_layer)}"
    every = Part(f"{model.layers} layers", times, model.layers * model.one_layer)
    return LAYOUTS[layout](model, each, every, lambda part: _equation(part, number))


def _equation(part: Part, number: Callable[[int], str]) -> str:
    return f"{part.formula} = {number(part.value)}" if part.formula else number(part.value)


Write = Callable[[Part], str]


def _list(model: Model, each: Part, every: Part, write: Write) -> str:
    before, layer, after = (
        [f"- {part.label}: {write(part)}" for part in some]
        for some in (model.before, [*model.layer, each], model.after)
    )
    whole = f"- Total: {write(Part('', '', model.total))}"
    return "\n".join((*before, "", "Per layer:", "", *layer, "", f"- {every.label}: {write(every)}", *after, whole, ""))


def _nested(model: Model, each: Part, every: Part, write: Write) -> str:
    lines = [f"- {part.label}: {write(part)}" for part in model.before]
    lines += ["- Transformer layer:", *(f"  - {part.label}: {write(part)}" for part in (*model.layer, each))]
    lines += [f"- {part.label}: {write(part)}" for part in (every, *model.after)]
    return "\n".join((*lines, f"- Total: {write(Part('', '', model.total))}", ""))


def _tree(model: Model, each: Part, every: Part, write: Write) -> str:
    lines = [
        f"GPT\n├── {model.before[0].label}: {write(model.before[0])}",
        f"├── {model.before[1].label}: {write(model.before[1])}",
    ]
    lines += [f"├── Layers (×{model.layers}):", *(f"│   ├── {part.label}: {write(part)}" for part in model.layer)]
    lines += [f"│   └── {each.label}: {write(each)}", *(f"├── {part.label}: {write(part)}" for part in model.after)]
    return "\n".join((*lines, f"Total: {write(Part('', '', model.total))}", ""))


def _rooted(model: Model, each: Part, every: Part, write: Write) -> str:
    """The total at the root of a tree, and the numbers of one and all layers above their parts."""
    one, layers = write(each), write(every._replace(formula=""))
    lines = [f"├── {part.label}: {write(part)}" for part in model.before]
    lines += [f"├── {model.layers} × Layer ({one} each, {layers} in all)"]
    lines += [f"│   ├── {part.label}: {write(part)}" for part in model.layer]
    lines += [f"├── {part.label}: {write(part)}" for part in model.after]
    return "\n".join((f"GPT ({write(Part('', '', model.total))})", *lines, ""))


def _tables(model: Model, each: Part, every: Part, write: Write) -> str:
    """A table of one layer with its total, then a table of the model with shares."""
    parts = (*model.before, Part(f"{model.layers} × Encoder layer", "", every.value), *model.after)
    layer = [f"| {part.label} | {part.formula} | {write(part._replace(formula=''))} |" for part in model.layer]
    rows = [f"| {part.label} | {write(part._replace(formula=''))} | {part.value / model.total:.1%} |" for part in parts]
    return "\n".join(
        (
            "### Encoder layer\n\n| Part | Shape | Parameters |\n|---|---|---|",
            *layer,
            f"| **Total** | | **{write(each)}** |\n\n## Model\n\n| Part | Parameters | Share |\n|---|---|---|",
            *rows,
            f"| **Total** | **{write(Part('', '', model.total))}** | **100%** |\n",
        )
    )


def _table(model: Model, each: Part, every: Part, write: Write) -> str:
    layer = [part._replace(label=f"{part.label} per layer") for part in model.layer]
    rows = [f"| {part.label} | {write(part)} |" for part in (*model.before, *layer, each, every, *model.after)]
    return "\n".join(
        ("| Part | Parameters |", "|---|---|", *rows, f"| Total | {write(Part('', '', model.total))} |", "")
    )


def _cells(model: Model, each: Part, every: Part, write: Write) -> str:
    """A table with the products in a column of their own."""
    layer = [part._replace(label=f"{part.label} per layer") for part in model.layer]
    parts = (*model.before, *layer, each, every, *model.after, Part("Total", "", model.total))
    rows = (f"| {part.label} | {part.formula} | {write(part._replace(formula=''))} |" for part in parts)
    return "\n".join(("| Part | Formula | Parameters |", "|---|---|---|", *rows, ""))


def _tabs(model: Model, each: Part, every: Part, write: Write) -> str:
    """The same table as copied from a page, with tabs between its cells."""
    _, _, *rows = _cells(model, each, every, write).splitlines()
    return "\n".join("\t".join(cell.strip() for cell in row.strip("|").split("|")) for row in rows) + "\n"


def _indented(model: Model, each: Part, every: Part, write: Write) -> str:
    """The number of one layer above its indented parts."""
    lines = [f"{part.label}: {write(part)}" for part in (*model.before, each)]
    lines += [f"    {part.label}: {write(part)}" for part in model.layer]
    parts = (every, *model.after, Part("Total", "", model.total))
    return "\n".join((*lines, *(f"{part.label}: {write(part)}" for part in parts), ""))


def _keys(model: Model, each: Part, every: Part, write: Write) -> str:
    """Keys and numbers, with the products in comments: "mlp: 4.72M  # 2 × 768 × 3072"."""

    def line(part: Part) -> str:
        formula = f"  # {part.formula}" if part.formula else ""
        return f"{part.label.lower()}: {write(part._replace(formula=''))}{formula}"

    layer = [f"  {line(part)}" for part in (*model.layer, each._replace(label="total"))]
    whole = Part("total", "", model.total)
    return "\n".join(
        (
            *map(line, model.before),
            "layer:",
            *layer,
            line(every._replace(label="layers")),
            *map(line, (*model.after, whole)),
            "",
        )
    )


def _comments(model: Model, each: Part, every: Part, write: Write) -> str:
    """Comments of code: "self.mlp = MLP()  # 2 × 768 × 3072 = 4.72M", "# all blocks: 85.05M"."""

    def line(part: Part) -> str:
        return f"self.{part.label.split(' ')[0].lower()} = build()  # {write(part)}"

    blocks = [f"# per block: {write(each)}", f"# all blocks: {write(every._replace(formula=''))}"]
    whole = Part("", "", model.total)
    lines = (*map(line, model.before), f"# {model.layers} blocks, each:", *map(line, model.layer), *blocks)
    return "\n".join((*lines, *map(line, model.after), f"# total: {write(whole)}", ""))


def _arrows(model: Model, each: Part, every: Part, write: Write) -> str:
    """An arrow before each number: "MLP: 2 × 768 × 3072 -> 4.72M"."""

    def line(part: Part) -> str:
        return (
            f"{part.label}: {part.formula} -> {write(part._replace(formula=''))}"
            if part.formula
            else f"{part.label} -> {write(part)}"
        )

    parts = (
        *model.before,
        *model.layer,
        each._replace(label="Total per layer"),
        every._replace(formula=""),
        *model.after,
    )
    return "\n".join((*map(line, parts), line(Part("Total", "", model.total)), ""))


def _prose(model: Model, each: Part, every: Part, write: Write) -> str:
    """Sentences in one paragraph."""
    before = " ".join(f"The {part.label.lower()} has {write(part)} parameters." for part in model.before)
    layer = ", ".join(f"{part.label} with {write(part)}" for part in model.layer)
    after = " and ".join(f"the {part.label} ({write(part._replace(formula=''))})" for part in model.after)
    each, every = each._replace(formula=""), every._replace(formula="")
    return (
        f"{before} Each of the {model.layers} layers has {layer}. That gives {write(each)} per layer, {write(every)} for "
        f"all {model.layers} layers. Then there is {after}. In total the model has {write(Part('', '', model.total))} parameters.\n"
    )


def _wrapped(model: Model, each: Part, every: Part, write: Write) -> str:
    """Sums in a comment of code, wrapped over lines, with named addends and their products."""
    value = write(each).replace(",", "_")

    def added(parts: Sequence[Part]) -> str:
        numbers = (write(part._replace(formula="")).partition(" ")[0] for part in parts)
        named = (
            f"{part.label.split(' ')[0]} {part.formula} ({number})" for part, number in zip(parts, numbers, strict=True)
        )
        return "\n *     + ".join(named).replace(",", "_")

    whole = (*model.before, every._replace(label="blocks"), *model.after)
    return "\n".join(
        (
            "/*",
            f" * One layer = {added(model.layer)} = {value}",
            " *",
            f" * Total = {added(whole)} = {write(Part('', '', model.total)).replace(',', '_')}",
            " */",
            "",
        )
    )


def _running(model: Model, each: Part, every: Part, write: Write) -> str:
    """A table with the sum so far in its last column."""
    rows, sums = ["| Part | Parameters | Running total |", "|---|---|---|"], 0
    for part in (*model.before, every, *model.after):
        sums += part.value
        rows.append(f"| {part.label} | {write(part._replace(formula=''))} | {write(Part('', '', sums))} |")
    return "\n".join((*rows, ""))


LAYOUTS = {
    "list": _list,
    "nested": _nested,
    "tree": _tree,
    "rooted": _rooted,
    "table": _table,
    "tables": _tables,
    "cells": _cells,
    "tabs": _tabs,
    "indented": _indented,
    "keys": _keys,
    "comments": _comments,
    "arrows": _arrows,
    "prose": _prose,
    "running": _running,
    "wrapped": _wrapped,
}
