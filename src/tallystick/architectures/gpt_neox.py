"""GPT-NeoX (Black et al. 2022, "GPT-NeoX-20B: An Open-Source Autoregressive Language Model"), and Pythia."""

from tallystick.architectures._decoder import plain_mlp, share_of
from tallystick.architectures._siblings import OLDER
from tallystick.blueprint import (
    Attention,
    Config,
    Embedding,
    Group,
    Head,
    Heads,
    LayerNorm,
    Linear,
    Model,
    Parallel,
    Repeat,
    architecture,
)


@architecture(
    "gpt_neox",
    "GPTNeoXForCausalLM",
    siblings=OLDER,
    running={"hidden_act": "gelu", "use_parallel_residual": True, "rotary_pct": 0.25},
    vocab_size=50432,
    hidden_size=6144,
    intermediate_size=24576,
    num_hidden_layers=44,
    num_attention_heads=64,
    attention_bias=True,
    tie_word_embeddings=False,
)
def gpt_neox(c: Config) -> Model:
    c.require_divisible("hidden_size", by="num_attention_heads")
    d, inner, bias = c.hidden_size, c.intermediate_size, c.attention_bias
    heads = c.num_attention_heads
    block = (Parallel if c.use_parallel_residual else Group)(
        input_layernorm=LayerNorm(d),
        post_attention_layernorm=LayerNorm(d),
        attention=Attention(
            Heads(heads, heads, d / heads, rotary=share_of(c, d / heads, "rotary_pct"), joined=True),
            query_key_value=Linear(d, 3 * d, bias=bias),
            dense=Linear(d, d, bias=bias),
        ),
        mlp=plain_mlp(d, inner, c.hidden_act, "dense_h_to_4h", "dense_4h_to_h"),
    )
    head = "embed_out" if c.published else "lm_head"
    return Model(
        gpt_neox=Group(
            embed_in=Embedding(c.vocab_size, d),
            layers=Repeat(c.num_hidden_layers, block),
            final_layer_norm=LayerNorm(d),
        ),
        **{head: Head(d, c.vocab_size)},
        tie=(f"{head}.weight", "gpt_neox.embed_in.weight") if c.tie_word_embeddings else None,
    )
