"""GPT-NeoX and Pythia: parallel attention and MLP.

Source: Black et al. 2022, "GPT-NeoX-20B: An Open-Source Autoregressive Language Model".
"""

from tallystick.architectures import kit
from tallystick.architectures.kit.variants import OLDER
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture


@architecture(
    "gpt_neox",
    "GPTNeoXForCausalLM",
    variants=OLDER,
    running={"hidden_act": "gelu", "use_parallel_residual": True, "rotary_pct": 0.25},
    vocab_size=50432,
    hidden_size=6144,
    intermediate_size=24576,
    num_hidden_layers=44,
    num_attention_heads=64,
    attention_bias=True,
    tie_word_embeddings=False,
)
def gpt_neox(c: Config) -> nn.Model:
    c.require_divisible("hidden_size", by="num_attention_heads")
    d, inner, bias = c.hidden_size, c.intermediate_size, c.attention_bias
    heads = c.num_attention_heads
    block = (nn.ParallelBlock if c.use_parallel_residual else nn.Module)(
        input_layernorm=nn.LayerNorm(d),
        post_attention_layernorm=nn.LayerNorm(d),
        attention=nn.Attention(
            nn.Heads(heads, heads, d / heads, rotary=kit.share_of(c, d / heads, "rotary_pct")),
            query_key_value=nn.Linear(d, 3 * d, bias=bias),
            dense=nn.Linear(d, d, bias=bias),
        ),
        mlp=kit.plain_mlp(d, inner, c.hidden_act, "dense_h_to_4h", "dense_4h_to_h"),
    )
    head = "embed_out" if c.published else "lm_head"
    return nn.Model(
        gpt_neox=nn.Module(
            embed_in=nn.Embedding(c.vocab_size, d),
            layers=nn.Repeat(c.num_hidden_layers, block),
            final_layer_norm=nn.LayerNorm(d),
        ),
        **{head: nn.Head(d, c.vocab_size)},
        tie=(f"{head}.weight", "gpt_neox.embed_in.weight") if c.tie_word_embeddings else None,
    )
