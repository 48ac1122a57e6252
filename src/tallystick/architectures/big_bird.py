"""BigBird: BERT's tensors, and a pooler that the language model has too.

Source: Zaheer et al. 2020, "Big Bird: Transformers for Longer Sequences".
"""

from tallystick.architectures.kit.bert import KEYS, embeddings, heads, layers, with_cls
from tallystick.architectures.kit.bert_variants import UNPOOLED, with_order
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, ModelVariant, architecture
from tallystick.errors import shown

ATTENTION_KINDS = ("block_sparse", "original_full")
# The language model has the pooler already.
IN_ORDER = {"ForPreTraining": ModelVariant(with_order, "`seq_relationship` in addition to the LM head")}


@architecture(
    "big_bird",
    "BigBirdForCausalLM",
    variants=UNPOOLED | IN_ORDER,
    running={"attention_type": "block_sparse"},
    **KEYS | {"vocab_size": 50358, "max_position_embeddings": 4096},
    use_bias=True,
)
def big_bird(c: Config) -> nn.Model:
    if c.attention_type not in ATTENTION_KINDS:
        raise c.refuse(f"attention_type is {shown(c.attention_type)}, expected {' or '.join(ATTENTION_KINDS)}")
    d = c.hidden_size
    stack = layers(c, heads(c), bias=c.use_bias)
    model = with_cls(
        c, "bert", nn.Module(embeddings=embeddings(c), encoder=nn.Module(layer=stack), pooler=nn.Linear(d, d))
    )
    irregular = "the pooler processes one token per sequence"
    if c.attention_type == ATTENTION_KINDS[0]:
        irregular += ", and long sequences use sparse block attention"
    return model.replace(irregular=irregular)
