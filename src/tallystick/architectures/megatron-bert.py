"""Megatron-BERT: BERT with pre-norms and a final norm.

Source: Shoeybi et al. 2019, "Megatron-LM", section 3.
"""

from tallystick.architectures.kit.bert import KEYS, embeddings, heads, layers, with_cls
from tallystick.architectures.kit.bert_variants import BERT, IN_ORDER
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture

SIZES = {
    "vocab_size": 29056,
    "hidden_size": 1024,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "intermediate_size": 4096,
}


@architecture("megatron-bert", "MegatronBertForCausalLM", variants=BERT | IN_ORDER, **KEYS | SIZES)
def megatron_bert(c: Config) -> nn.Model:
    norm = nn.LayerNorm(c.hidden_size)
    stack = layers(c, heads(c), behind=False, attention={"ln": norm}, ln=norm)
    return with_cls(c, "bert", nn.Module(embeddings=embeddings(c, norm=False), encoder=nn.Module(layer=stack, ln=norm)))
