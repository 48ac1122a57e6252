"""Variants of BERT-style models: pooler, and heads for sequences, tokens and spans."""

from __future__ import annotations

from tallystick.architectures.kit.variants import (
    BARE,
    INSTEAD,
    labels_of_each,
    product,
    spans,
    two_products,
    variant,
    with_body,
)
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, ModelVariant


def _pooler(c: Config) -> dict[str, nn.Node]:
    return {"pooler": nn.Module(dense=product(c.hidden_size, c.hidden_size))}


def _classifier(c: Config) -> dict[str, nn.Node]:
    return labels_of_each(c, c.hidden_size)


def _of_one(c: Config) -> dict[str, nn.Node]:
    """One score per choice: each choice is a sequence."""
    return {"classifier": product(c.hidden_size, 1)}


def _of_two(c: Config) -> dict[str, nn.Node]:
    return {"classifier": two_products(c.hidden_size, c.hidden_size, c.num_labels)}


def with_order(c: Config, model: nn.Model) -> nn.Model:
    """Return the model with a second head: next-sentence prediction from the pooler."""
    heads = model.children["cls"]
    assert isinstance(heads, nn.Module)  # noqa: S101  # `with_cls` builds it so
    irregular = "the pooler and `seq_relationship` process one token per sequence"
    both = heads.with_children(seq_relationship=product(c.hidden_size, 2))
    return model.with_children(cls=both).replace(irregular=irregular)


def _pooled_with_order(c: Config, model: nn.Model) -> nn.Model:
    return with_order(c, with_body(model, **_pooler(c)))


CLASSIFIER = f"`classifier` {INSTEAD}"
POOLED = f"a pooler and {CLASSIFIER}"

# Variants without a pooler.
SPANS = {"ForQuestionAnswering": variant(f"`qa_outputs` {INSTEAD}", lambda c: spans(c, c.hidden_size))}
TOKENS = {
    "ForMaskedLM": ModelVariant(lambda c, model: model),  # the same tensors
    "ForTokenClassification": variant(CLASSIFIER, _classifier),
}
TWO_PRODUCTS = {"ForSequenceClassification": variant(CLASSIFIER, _of_two, once=True)}
UNPOOLED = {**BARE, **TOKENS, **TWO_PRODUCTS}

_BOTH = {
    "Model": variant("a pooler, and no LM head", inside=_pooler, once=True),
    "ForMultipleChoice": variant(POOLED, _of_one, inside=_pooler, once=True, keys={}),
    **TOKENS,
    **SPANS,
}
BERT = {**_BOTH, "ForSequenceClassification": variant(POOLED, _classifier, inside=_pooler, once=True)}
ROBERTA = {**_BOTH, **TWO_PRODUCTS}
IN_ORDER = {
    "ForPreTraining": ModelVariant(_pooled_with_order, "a pooler, and `seq_relationship` in addition to the LM head")
}
