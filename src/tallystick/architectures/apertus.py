"""Apertus: QK norm and the learned xIELU activation.

Source: Swiss AI Initiative 2025, "Apertus: Democratizing Open and Compliant LLMs for Global
Language Environments".
"""

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, optional


@architecture(
    "apertus",
    "ApertusForCausalLM",
    vocab_size=131072,
    hidden_size=4096,
    intermediate_size=14336,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=optional(),
    head_dim=optional(),
    hidden_act="xielu",
    attention_bias=False,
    tie_word_embeddings=False,
)
def apertus(c: Config) -> nn.Model:
    d, inner, runs = c.hidden_size, c.intermediate_size, kit.heads(c)
    block = nn.Module(
        self_attn=kit.attention(c, runs, bias=c.attention_bias, **kit.head_norms(runs)),
        mlp=nn.MLP(  # no runtime info: xIELU's activations are not modelled
            up_proj=nn.Linear(d, inner, bias=False),
            down_proj=nn.Linear(inner, d, bias=False),
            act_fn=_xielu() if c.hidden_act == "xielu" else None,
        ),
        attention_layernorm=nn.RMSNorm(d),
        feedforward_layernorm=nn.RMSNorm(d),
    )
    return kit.decoder(c, block)


def _xielu() -> nn.Module:
    """xIELU, an activation with learned slopes on both sides.

    Source: Huang and Schlag 2024, "Deriving Activation Functions Using Integration".
    """
    return nn.Module(alpha_p=nn.Parameter((1,)), alpha_n=nn.Parameter((1,)), beta=nn.Buffer(), eps=nn.Buffer())
