"""X-MOD: XLM-RoBERTa with an adapter per language.

Source: Pfeiffer et al. 2022, "Lifting the Curse of Multilinguality".
"""

import re
from fractions import Fraction

from tallystick.architectures import kit
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
from tallystick.errors import shown

_NAME = re.compile(r"[\w-]+")


@architecture(
    "xmod",
    "XmodForCausalLM",
    variants=ROBERTA,
    running=PADDING,
    **KEYS,
    pre_norm=False,
    adapter_reduction_factor=2,
    adapter_layer_norm=False,
    languages=None,
)
def xmod(c: Config) -> nn.Model:
    d = c.hidden_size
    waist = kit.rounded(d, c.adapter_reduction_factor)
    languages = _languages(c)
    adapters = nn.MLP(**{name: nn.Module(dense1=nn.Linear(d, waist), dense2=nn.Linear(waist, d)) for name in languages})
    adapters = adapters.replace(active=Fraction(1, len(languages) or 1))  # a token uses one language's adapter
    own = {"adapter_layer_norm": nn.LayerNorm(d)} if c.adapter_layer_norm else {}
    stack = layers(c, heads_after_padding(c), output={**own, "adapter_modules": adapters})
    final = nn.LayerNorm(d) if c.pre_norm else None
    base = nn.Module(embeddings=embeddings(c), encoder=nn.Module(layer=stack, LayerNorm=final))
    return with_lm_head(c, "roberta", base, **transform(c, "layer_norm"))


def _languages(c: Config) -> list[str]:
    """Language names without duplicates; tensors are named after them."""
    listed = ["en_XX"] if c.languages is None else c.languages
    if not isinstance(listed, list) or not all(isinstance(name, str) and _NAME.fullmatch(name) for name in listed):
        raise c.refuse(f"languages is {shown(listed)}, expected a list of names such as en_XX")
    return list(dict.fromkeys(listed))
