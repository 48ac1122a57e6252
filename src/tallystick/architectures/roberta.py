"""RoBERTa (Liu et al. 2019, "RoBERTa: A Robustly Optimized BERT Pretraining Approach")."""

from tallystick.architectures._bert import KEYS, PADDING, roberta_like
from tallystick.architectures._bert_siblings import ROBERTA
from tallystick.blueprint import Config, Model, architecture


@architecture("roberta", "RobertaForCausalLM", siblings=ROBERTA, running=PADDING, **KEYS | {"vocab_size": 50265})
def roberta(c: Config) -> Model:
    return roberta_like(c)
