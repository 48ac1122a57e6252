"""data2vec for text: RoBERTa's tensors.

Source: Baevski et al. 2022, "data2vec: A General Framework for Self-supervised Learning".
"""

from tallystick.architectures.kit.bert import KEYS, PADDING, roberta_like
from tallystick.architectures.kit.bert_variants import ROBERTA
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture


@architecture("data2vec-text", "Data2VecTextForCausalLM", variants=ROBERTA, running=PADDING, **KEYS)
def data2vec_text(c: Config) -> nn.Model:
    return roberta_like(c, "data2vec_text")
