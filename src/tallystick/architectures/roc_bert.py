"""RoCBert: BERT with pronunciation and shape embeddings.

Source: Su et al. 2022, "RoCBert: Robust Chinese Bert".
"""

from tallystick.architectures.kit.bert import KEYS, embeddings, heads, layers, with_cls
from tallystick.architectures.kit.bert_variants import BERT
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture


@architecture(
    "roc_bert",
    "RoCBertForCausalLM",
    variants=BERT,
    **KEYS,
    enable_pronunciation=True,
    enable_shape=True,
    pronunciation_embed_dim=768,
    pronunciation_vocab_size=910,
    shape_embed_dim=512,
    shape_vocab_size=24858,
    concat_input=True,
)
def roc_bert(c: Config) -> nn.Model:
    d = c.hidden_size
    joined = d
    if c.enable_pronunciation:
        joined += c.pronunciation_embed_dim
    if c.enable_shape:
        joined += c.shape_embed_dim
    summed = embeddings(
        c,
        pronunciation_embed=nn.Embedding(c.pronunciation_vocab_size, c.pronunciation_embed_dim),
        shape_embed=nn.Embedding(c.shape_vocab_size, c.shape_embed_dim),
        map_inputs_layer=nn.Linear(joined, d) if c.concat_input else None,
    )
    return with_cls(c, "roc_bert", nn.Module(embeddings=summed, encoder=nn.Module(layer=layers(c, heads(c)))))
