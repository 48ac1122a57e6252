"""ELECTRA's generator: BERT with a narrow embedding.

Source: Clark et al. 2020, "ELECTRA: Pre-training Text Encoders as Discriminators".
"""

from tallystick.architectures import kit
from tallystick.architectures.kit.bert import KEYS, embeddings, heads, layers, transform
from tallystick.architectures.kit.bert_variants import SPANS, UNPOOLED
from tallystick.architectures.kit.variants import INSTEAD, product, variant
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture

# The discriminator predicts per token whether the generator replaced it; most checkpoints are of
# this class.
DISCRIMINATOR = {
    "ForPreTraining": variant(
        f"`discriminator_predictions` {INSTEAD}",
        lambda c: {
            "discriminator_predictions": nn.Module(
                dense=product(c.hidden_size, c.hidden_size), dense_prediction=product(c.hidden_size, 1)
            )
        },
        keys={},
    )
}


@architecture(
    "electra",
    "ElectraForCausalLM",
    variants=UNPOOLED | SPANS | DISCRIMINATOR,
    **KEYS | {"hidden_size": 256, "num_attention_heads": 4, "intermediate_size": 1024},
    embedding_size=128,
)
def electra(c: Config) -> nn.Model:
    d, width = c.hidden_size, c.embedding_size
    runs = heads(c, kit.rounded(d, c.num_attention_heads))
    return nn.Model(
        electra=nn.Module(
            embeddings=embeddings(c, width),
            embeddings_project=nn.Linear(width, d) if width != d else None,
            encoder=nn.Module(layer=layers(c, runs)),
        ),
        generator_predictions=nn.Module(**transform(c, width=width)),
        generator_lm_head=nn.Head(width, c.vocab_size, bias=True),
        tie=("generator_lm_head.weight", "electra.embeddings.word_embeddings.weight")
        if c.tie_word_embeddings
        else None,
    )
