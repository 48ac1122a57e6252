"""Apertus (Swiss AI Initiative 2025, "Apertus: Democratizing Open and Compliant LLMs for Global Language Environments")."""

from tallystick.architectures._decoder import attention, decoder, head_norms, heads
from tallystick.blueprint import MLP, Buffer, Config, Group, Linear, Model, RMSNorm, Tensor, architecture, maybe


@architecture(
    "apertus",
    "ApertusForCausalLM",
    vocab_size=131072,
    hidden_size=4096,
    intermediate_size=14336,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=maybe(),
    head_dim=maybe(),
    hidden_act="xielu",
    attention_bias=False,
    tie_word_embeddings=False,
)
def apertus(c: Config) -> Model:
    d, inner, runs = c.hidden_size, c.intermediate_size, heads(c)
    block = Group(
        self_attn=attention(c, runs, bias=c.attention_bias, **head_norms(runs)),
        mlp=MLP(  # what this activation keeps is not told
            up_proj=Linear(d, inner, bias=False),
            down_proj=Linear(inner, d, bias=False),
            act_fn=_xielu() if c.hidden_act == "xielu" else None,
        ),
        attention_layernorm=RMSNorm(d),
        feedforward_layernorm=RMSNorm(d),
    )
    return decoder(c, block)


def _xielu() -> Group:
    """An activation that learns how it bends on either side (Huang and Schlag 2024, "Deriving Activation Functions Using Integration")."""
    return Group(alpha_p=Tensor((1,)), alpha_n=Tensor((1,)), beta=Buffer(), eps=Buffer())
