"""Moshi's temporal transformer (Défossez et al. 2024, "Moshi: a speech-text foundation model for real-time dialogue")."""

from tallystick import anatomy
from tallystick.architectures._decoder import heads
from tallystick.blueprint import (
    MLP,
    Attention,
    Config,
    Embedding,
    Group,
    Head,
    Linear,
    Model,
    Projection,
    Repeat,
    RMSNorm,
    architecture,
    maybe,
    natural,
)


@architecture(
    "moshi",
    "MoshiForCausalLM",
    running={"sliding_window": natural(3000, nullable=True)},
    vocab_size=32000,
    hidden_size=4096,
    ffn_dim=22528,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=maybe(),
    head_dim=maybe(),
)
def moshi(c: Config) -> Model:
    c.require_divisible("hidden_size", by="num_attention_heads")
    d, inner = c.hidden_size, c.ffn_dim
    if int(inner) % 2:
        raise c.refuse(f"ffn_dim = {int(inner)} is not even: half of it gates the other half", code="indivisible")
    attends = heads(c, windows=((c.sliding_window, 1),))
    queries, keys = attends.queries * attends.size, attends.keys * attends.size
    block = Group(
        self_attn=Attention(
            attends,
            q_proj=_linear(d, queries),
            k_proj=_linear(d, keys),
            v_proj=_linear(d, keys),
            o_proj=_linear(queries, d),
        ),
        mlp=MLP(fc1=Linear(d, inner, bias=False), fc2=Linear(inner / 2, d, bias=False)),
        input_layernorm=RMSNorm(d, kind="rms32"),
        post_attention_layernorm=RMSNorm(d, kind="rms32"),
    )
    return Model(
        # The last row stands for no token.
        model=Group(
            embed_tokens=Embedding(c.vocab_size + 1, d),
            layers=Repeat(c.num_hidden_layers, block),
            norm=RMSNorm(d, kind="rms32"),
        ),
        lm_head=Head(d, c.vocab_size),
    )


def _linear(inputs: int, outputs: int) -> Group:
    return Projection(anatomy.Projection(inputs), linear=Linear(inputs, outputs, bias=False))
