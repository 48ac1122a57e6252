"""nanochat (Karpathy 2025, "nanochat: the best ChatGPT that $100 can buy"): norms without scales, a squared ReLU."""

from tallystick import anatomy
from tallystick.architectures._decoder import attention, heads, plain_mlp
from tallystick.blueprint import (
    Config,
    Embedding,
    Group,
    Head,
    Model,
    Norm,
    Repeat,
    architecture,
    maybe,
)


@architecture(
    "nanochat",
    "NanoChatForCausalLM",
    running={"hidden_act": "relu2", "final_logit_softcapping": 15.0},
    vocab_size=50304,
    hidden_size=768,
    intermediate_size=8192,
    num_hidden_layers=12,
    num_attention_heads=6,
    num_key_value_heads=maybe(),
    head_dim=maybe(),
    attention_bias=False,
    tie_word_embeddings=False,
)
def nanochat(c: Config) -> Model:
    d, inner, runs = c.hidden_size, c.intermediate_size, heads(c)
    block = Group(
        self_attn=attention(
            c,
            runs,
            bias=c.attention_bias,
            q_norm=_norm(runs.size, runs.queries),
            k_norm=_norm(runs.size, runs.keys),
        ),
        mlp=plain_mlp(d, inner, c.hidden_act, "fc1", "fc2", bias=False),
        input_layernorm=_norm(d),
        post_attention_layernorm=_norm(d),
    )
    return Model(
        model=Group(
            embed_tokens=Embedding(c.vocab_size, d),
            embed_norm=_norm(d),  # the final one again: it has no tensor of its own
            layers=Repeat(c.num_hidden_layers, block),
            norm=_norm(d),
        ),
        lm_head=Head(d, c.vocab_size, capped=bool(c.final_logit_softcapping)),
        tie=("lm_head.weight", "model.embed_tokens.weight") if c.tie_word_embeddings else None,
    )


def _norm(width: int, times: int = 1) -> Norm:
    """A norm that holds no tensor."""
    return Norm(anatomy.Norm("bare", width, times))
