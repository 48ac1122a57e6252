"""BERT (Devlin et al. 2018, "BERT: Pre-training of Deep Bidirectional Transformers"), with its language modelling head."""

from tallystick.architectures._bert import KEYS, embeddings, heads, layers, with_cls
from tallystick.architectures._bert_siblings import BERT, IN_ORDER
from tallystick.blueprint import Config, Group, Model, Node, Norm, Stack, architecture

FIRST_NAMES = {"weight": "gamma", "bias": "beta"}


@architecture("bert", "BertLMHeadModel", siblings=BERT | IN_ORDER, **KEYS)
def bert(c: Config) -> Model:
    model = with_cls(c, "bert", Group(embeddings=embeddings(c), encoder=Group(layer=layers(c, heads(c)))))
    if c.published:  # as Google did, whose norms name their tensors otherwise
        _name_norms(model)
    return model


def _name_norms(node: Node) -> None:
    if isinstance(node, Stack):
        for _, block in node.runs:
            _name_norms(block)
    elif isinstance(node, Norm):
        node.children = {FIRST_NAMES.get(name, name): tensor for name, tensor in node.children.items()}
    elif isinstance(node, Group):
        for child in node.children.values():
            _name_norms(child)
