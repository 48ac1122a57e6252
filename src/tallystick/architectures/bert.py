"""BERT with its language modelling head.

Source: Devlin et al. 2018, "BERT: Pre-training of Deep Bidirectional Transformers".
"""

from tallystick.architectures.kit.bert import KEYS, embeddings, heads, layers, with_cls
from tallystick.architectures.kit.bert_variants import BERT, IN_ORDER
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture

FIRST_NAMES = {"weight": "gamma", "bias": "beta"}


@architecture("bert", "BertLMHeadModel", variants=BERT | IN_ORDER, **KEYS)
def bert(c: Config) -> nn.Model:
    model = with_cls(c, "bert", nn.Module(embeddings=embeddings(c), encoder=nn.Module(layer=layers(c, heads(c)))))
    return nn.rebuilt(model, _first_named) if c.published else model


def _first_named(node: nn.Node) -> nn.Node:
    """Rename a norm's tensors as in Google's checkpoints: gamma and beta."""
    if not isinstance(node, nn.Norm):
        return node
    return nn.Norm(node.runs, **{FIRST_NAMES.get(name, name): tensor for name, tensor in node.children.items()})
