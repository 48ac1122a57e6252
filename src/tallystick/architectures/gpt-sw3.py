"""GPT-SW3 (Ekgren et al. 2023, "GPT-SW3: An Autoregressive Language Model for the Nordic Languages"): GPT-2 in all but its name."""

from tallystick.architectures.gpt2 import gpt2
from tallystick.blueprint import REGISTRY, Config, Model, architecture

GPT2 = REGISTRY["gpt2"]


@architecture(
    "gpt-sw3", GPT2.class_name, siblings=GPT2.siblings, aliases=GPT2.aliases, running=GPT2.running, **GPT2.keys
)
def gpt_sw3(c: Config) -> Model:
    return gpt2(c)
