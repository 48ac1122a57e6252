"""XLM-RoBERTa (Conneau et al. 2019, "Unsupervised Cross-lingual Representation Learning at Scale"): RoBERTa's tensors."""

from tallystick.architectures._bert import KEYS, PADDING, roberta_like
from tallystick.architectures._bert_siblings import ROBERTA
from tallystick.blueprint import Config, Model, architecture


@architecture("xlm-roberta", "XLMRobertaForCausalLM", siblings=ROBERTA, running=PADDING, **KEYS)
def xlm_roberta(c: Config) -> Model:
    return roberta_like(c)
