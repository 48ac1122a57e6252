"""CamemBERT (Martin et al. 2019, "CamemBERT: a Tasty French Language Model"): RoBERTa's tensors."""

from tallystick.architectures._bert import KEYS, PADDING, roberta_like
from tallystick.architectures._bert_siblings import ROBERTA
from tallystick.blueprint import Config, Model, architecture


@architecture("camembert", "CamembertForCausalLM", siblings=ROBERTA, running=PADDING, **KEYS)
def camembert(c: Config) -> Model:
    return roberta_like(c)
