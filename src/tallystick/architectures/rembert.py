"""RemBERT: BERT with a narrow input embedding and a wide output embedding.

Source: Chung et al. 2020, "Rethinking Embedding Coupling in Pre-trained Language Models".
"""

from tallystick.architectures.kit.bert import KEYS, embeddings, heads, layers, transform
from tallystick.architectures.kit.bert_variants import BERT
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture

SIZES = {
    "vocab_size": 250300,
    "hidden_size": 1152,
    "num_hidden_layers": 32,
    "num_attention_heads": 18,
    "intermediate_size": 4608,
    "input_embedding_size": 256,
    "output_embedding_size": 1664,
}
OWN = {key: default for key, default in (KEYS | SIZES).items() if key != "tie_word_embeddings"}  # never tied


@architecture("rembert", "RemBertForCausalLM", variants=BERT, **OWN)
def rembert(c: Config) -> nn.Model:
    narrow, wide = c.input_embedding_size, c.output_embedding_size
    return nn.Model(
        rembert=nn.Module(
            embeddings=embeddings(c, narrow),
            encoder=nn.Module(embedding_hidden_mapping_in=nn.Linear(narrow, c.hidden_size), layer=layers(c, heads(c))),
        ),
        cls=nn.Module(
            predictions=nn.Module(**transform(c, width=wide), decoder=nn.Head(wide, c.vocab_size, bias=True))
        ),
    )
