"""BERT (Devlin et al. 2018, "BERT: Pre-training of Deep Bidirectional Transformers"), with its language modelling head."""

from tallystick.architectures._bert import KEYS, embeddings, heads, layers, with_cls
from tallystick.architectures._bert_siblings import BERT, IN_ORDER
from tallystick.blueprint import Config, Group, Model, Node, Norm, architecture, rebuilt

FIRST_NAMES = {"weight": "gamma", "bias": "beta"}


@architecture("bert", "BertLMHeadModel", siblings=BERT | IN_ORDER, **KEYS)
def bert(c: Config) -> Model:
    model = with_cls(c, "bert", Group(embeddings=embeddings(c), encoder=Group(layer=layers(c, heads(c)))))
    return rebuilt(model, _first_named) if c.published else model


def _first_named(node: Node) -> Node:
    """A norm with the names that its tensors have in the files of Google."""
    if not isinstance(node, Norm):
        return node
    return Norm(node.runs, **{FIRST_NAMES.get(name, name): tensor for name, tensor in node.children.items()})
