"""RoBERTa (Liu et al. 2019, "RoBERTa: A Robustly Optimized BERT Pretraining Approach")."""

from tallystick.architectures.kit.bert import KEYS, PADDING, roberta_like
from tallystick.architectures.kit.bert_variants import ROBERTA
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture


@architecture("roberta", "RobertaForCausalLM", variants=ROBERTA, running=PADDING, **KEYS | {"vocab_size": 50265})
def roberta(c: Config) -> nn.Model:
    return roberta_like(c)
