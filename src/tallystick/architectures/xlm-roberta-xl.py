"""XLM-RoBERTa XL: XLM-RoBERTa with pre-norms.

Source: Goyal et al. 2021, "Larger-Scale Transformers for Multilingual Masked Language Modeling".
"""

from tallystick.architectures.kit.bert import (
    KEYS,
    PADDING,
    embeddings,
    heads_after_padding,
    layers,
    transform,
    with_lm_head,
)
from tallystick.architectures.kit.bert_variants import ROBERTA
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, nonnegative

SIZES = {
    "vocab_size": 250880,
    "hidden_size": 2560,
    "num_hidden_layers": 36,
    "num_attention_heads": 32,
    "intermediate_size": 10240,
    "max_position_embeddings": 514,
    "type_vocab_size": nonnegative(1),
}


@architecture("xlm-roberta-xl", "XLMRobertaXLForCausalLM", variants=ROBERTA, running=PADDING, **KEYS | SIZES)
def xlm_roberta_xl(c: Config) -> nn.Model:
    norm = nn.LayerNorm(c.hidden_size)
    stack = layers(c, heads_after_padding(c), behind=False, attention={"self_attn_layer_norm": norm}, LayerNorm=norm)
    base = nn.Module(embeddings=embeddings(c, norm=False), encoder=nn.Module(layer=stack, LayerNorm=norm))
    return with_lm_head(c, "roberta", base, **transform(c, "layer_norm"))
