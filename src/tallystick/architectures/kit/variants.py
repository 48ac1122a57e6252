"""Variants of a language model: the same body with another head, or with none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tallystick.core import nodes as nn
from tallystick.core.registry import Config, ModelVariant

LABELS = {"num_labels": 2}
INSTEAD = "instead of the LM head"
Nodes = Callable[[Config], Mapping[str, nn.Node]]


def variant(
    words: str,
    top: Nodes | None = None,
    *,
    inside: Nodes | None = None,
    once: bool = False,
    keys: Mapping[str, Any] | None = None,
) -> ModelVariant:
    """Return a variant with another head than the LM head.

    Args:
        words: what replaces the LM head, for messages.
        top: builds that head. None: no head, and tensors have their names in the body.
        inside: builds further children of the body.
        once: whether these read one token per sequence instead of every token.
        keys: further config keys; None: `num_labels` if there is a head.
    """

    def make(c: Config, model: nn.Model) -> nn.Model:
        if inside:
            model = with_body(model, **inside(c))
        irregular = "the tensors after the layers process one token per sequence" if once else model.irregular
        return under(model, irregular, **top(c)) if top else bare(model, irregular)

    return ModelVariant(make, words, keys if keys is not None else LABELS if top else {})


def product(reads: int, gives: int, *, bias: bool = True) -> nn.Module:
    """Return a linear layer of a head, without runtime info: activations are not modelled."""
    return nn.Module(**nn.Linear(reads, gives, bias=bias).children)


def two_products(reads: int, d: int, labels: int) -> nn.Module:
    """Return a head of two linear layers: `reads` → `d` → `labels`."""
    return nn.Module(dense=product(reads, d), out_proj=product(d, labels))


def labels_of_each(c: Config, d: int) -> dict[str, nn.Node]:
    """Return the head of token classification: one score per label."""
    return {"classifier": product(d, c.num_labels)}


def spans(c: Config, d: int) -> dict[str, nn.Node]:
    """Return the head of extractive question answering: scores for start and end of the span."""
    return {"qa_outputs": product(d, c.num_labels)}


# The sequence summary of XLM and XLNet, made from the vector of one token.
SUMMARY = {**LABELS, "summary_use_proj": True, "summary_proj_to_labels": False}


def summary(c: Config, d: int) -> nn.Module:
    """Return the summary projection: to `num_labels`, or to width `d`."""
    gives = c.num_labels if c.summary_proj_to_labels else d
    return nn.Module(summary=product(d, gives) if c.summary_use_proj else None)


def with_body(model: nn.Model, **nodes: nn.Node) -> nn.Model:
    """Return a language model with further children in its body."""
    ((name, body),) = _body(model).items()
    assert isinstance(body, nn.Module)  # noqa: S101  # a body is not a ModuleList
    return model.with_children(**{name: body.with_children(**nodes)})


def under(model: nn.Model, irregular: str = "", **head: nn.Node) -> nn.Model:
    """Return a language model's body under another head."""
    body = _body(model)
    return nn.Model(irregular, tie=_ties(model, body), **body, **head)


def bare(model: nn.Model, irregular: str = "") -> nn.Model:
    """Return the body alone; its tensors have their names inside the body."""
    body = _body(model)
    if len(body) > 1:
        return nn.Model(irregular, tie=None, **body)
    ((name, inner),) = body.items()
    assert isinstance(inner, nn.Module)  # noqa: S101  # a body is not a ModuleList
    prefix = f"{name}."

    def renamed(node: nn.Node) -> nn.Node:
        return node.replace(of=node.of.removeprefix(prefix)) if isinstance(node, nn.Shared) else node

    ties = {tied.removeprefix(prefix): to.removeprefix(prefix) for tied, to in _ties(model, body).items()}
    return nn.Model(irregular, tie=ties, **nn.rebuilt(inner, renamed).children)


def _body(model: nn.Model) -> dict[str, nn.Node]:
    """All but the head. In multimodal checkpoints: the towers and the text model's body."""
    (name, first), *_ = model.children.items()
    if not isinstance(first, nn.Tower):
        return {name: first}
    *_, (behind, text) = model.children.items()
    assert isinstance(text, nn.Module)  # noqa: S101  # `behind` builds it so
    return {**model.children, behind: nn.Module(model=text.children["model"])}


def _ties(model: nn.Model, body: Mapping[str, nn.Node]) -> dict[str, str]:
    """The ties of a language model that do not involve its head."""
    return {tied: to for tied, to in model.ties.items() if len(body) == 1 and tied.partition(".")[0] in body}


def _within(node: nn.Node) -> Iterator[nn.Node]:
    """Yield a node and all its descendants."""
    yield node
    if isinstance(node, nn.ModuleList):
        for _, block in node.runs:
            yield from _within(block)
    elif isinstance(node, nn.Module):
        for child in node.children.values():
            yield from _within(child)


def _read(model: nn.Model) -> int:
    """The elements of a token that the LM head reads."""
    for node in _within(model):
        weight = node.children.get("weight") if isinstance(node, nn.Projection) else None
        if isinstance(node, nn.Projection) and isinstance(weight, nn.Tensor) and weight.role == "head":
            return node.runs.reads
    raise AssertionError("a language model without a head")


def _of_sequences(c: Config, model: nn.Model) -> nn.Model:
    return under(model, model.irregular, score=product(_read(model), c.num_labels, bias=False))


def _of_tokens(c: Config, model: nn.Model) -> nn.Model:
    return under(model, model.irregular, score=product(_read(model), c.num_labels, bias=c.token_classification_bias))


def _of_tokens_before(c: Config, model: nn.Model) -> nn.Model:
    return under(model, model.irregular, **labels_of_each(c, _read(model)))


BARE = {"Model": variant("no LM head")}
DECODER = {
    **BARE,
    "ForSequenceClassification": ModelVariant(_of_sequences, f"`score` {INSTEAD}", LABELS),
    "ForTokenClassification": ModelVariant(
        _of_tokens, f"`score` {INSTEAD}", {**LABELS, "token_classification_bias": True}
    ),
}
# GPT-2 and its contemporaries name the token classification head `classifier`.
OLDER = {**DECODER, "ForTokenClassification": ModelVariant(_of_tokens_before, f"`classifier` {INSTEAD}", LABELS)}
