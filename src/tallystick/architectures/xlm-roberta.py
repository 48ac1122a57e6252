"""XLM-RoBERTa (Conneau et al. 2019, "Unsupervised Cross-lingual Representation Learning at Scale"): RoBERTa's tensors."""

from tallystick.architectures._bert import KEYS, PADDING, roberta_like
from tallystick.blueprint import Config, Model, architecture


@architecture("xlm-roberta", "XLMRobertaForCausalLM", scored=False, running=PADDING, **KEYS)
def xlm_roberta(c: Config) -> Model:
    return roberta_like(c)
