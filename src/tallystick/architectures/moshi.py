"""Moshi's temporal transformer.

Source: Défossez et al. 2024, "Moshi: a speech-text foundation model for real-time dialogue".
"""

from tallystick.architectures import kit
from tallystick.core import anatomy
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, nonnegative, optional


@architecture(
    "moshi",
    "MoshiForCausalLM",
    running={"sliding_window": nonnegative(3000, nullable=True)},
    vocab_size=32000,
    hidden_size=4096,
    ffn_dim=22528,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=optional(),
    head_dim=optional(),
)
def moshi(c: Config) -> nn.Model:
    c.require_divisible("hidden_size", by="num_attention_heads")
    d, inner = c.hidden_size, c.ffn_dim
    if int(inner) % 2:
        raise c.refuse(f"ffn_dim = {int(inner)} is not even: half of it gates the other half", code="indivisible")
    attends = kit.heads(c, windows=((c.sliding_window, 1),))
    queries, keys = attends.queries * attends.size, attends.keys * attends.size
    block = nn.Module(
        self_attn=nn.Attention(
            attends,
            q_proj=_linear(d, queries),
            k_proj=_linear(d, keys),
            v_proj=_linear(d, keys),
            o_proj=_linear(queries, d),
        ),
        mlp=nn.MLP(fc1=nn.Linear(d, inner, bias=False), fc2=nn.Linear(inner / 2, d, bias=False)),
        input_layernorm=nn.RMSNorm(d, kind="rms32"),
        post_attention_layernorm=nn.RMSNorm(d, kind="rms32"),
    )
    return nn.Model(
        # The last row of the embedding is not a token.
        model=nn.Module(
            embed_tokens=nn.Embedding(c.vocab_size + 1, d),
            layers=nn.Repeat(c.num_hidden_layers, block),
            norm=nn.RMSNorm(d, kind="rms32"),
        ),
        lm_head=nn.Head(d, c.vocab_size),
    )


def _linear(inputs: int, outputs: int) -> nn.Module:
    return nn.Projection(anatomy.Projection(inputs), linear=nn.Linear(inputs, outputs, bias=False))
