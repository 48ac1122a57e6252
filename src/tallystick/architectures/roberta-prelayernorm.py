"""RoBERTa with pre-norms.

Source: Ott et al. 2019, "fairseq": its encoder-normalize-before.
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
from tallystick.core.registry import Config, architecture


@architecture(
    "roberta-prelayernorm",
    "RobertaPreLayerNormForCausalLM",
    variants=ROBERTA,
    running=PADDING,
    **KEYS | {"vocab_size": 50265},
)
def roberta_prelayernorm(c: Config) -> nn.Model:
    norm = {"LayerNorm": nn.LayerNorm(c.hidden_size)}
    stack = layers(c, heads_after_padding(c), behind=False, attention=norm, intermediate=norm)
    base = nn.Module(embeddings=embeddings(c), encoder=nn.Module(layer=stack), **norm)
    return with_lm_head(c, "roberta_prelayernorm", base, **transform(c, "layer_norm"))
