"""InternLM2 and 2.5: Llama's block with one fused projection for queries, keys and values.

Source: Cai et al. 2024, "InternLM2 Technical Report".
"""

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, optional


@architecture(
    "internlm2",
    "InternLM2ForCausalLM",
    running=kit.HIDDEN_ACT_SILU,
    vocab_size=103168,
    hidden_size=4096,
    intermediate_size=11008,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=optional(),
    bias=True,
    tie_word_embeddings=False,
)
def internlm2(c: Config) -> nn.Model:
    c.require_divisible("hidden_size", by="num_attention_heads")
    d, inner = c.hidden_size, c.intermediate_size
    heads = kit.heads(c, d / c.num_attention_heads)
    norm = nn.RMSNorm(d)
    block = nn.Module(
        attention=nn.Attention(
            heads,
            wqkv=nn.Linear(d, (heads.queries + 2 * heads.keys) * heads.size, bias=c.bias),
            wo=nn.Linear(heads.queries * heads.size, d, bias=c.bias),
        ),
        feed_forward=nn.MLP(
            nn.FeedForward(d, inner, c.hidden_act, gated=True),
            w1=nn.Linear(d, inner, bias=False),
            w3=nn.Linear(d, inner, bias=False),
            w2=nn.Linear(inner, d, bias=False),
        ),
        attention_norm=norm,
        ffn_norm=norm,
    )
    return nn.Model(
        model=nn.Module(
            tok_embeddings=nn.Embedding(c.vocab_size, d),
            layers=nn.Repeat(c.num_hidden_layers, block),
            norm=norm,
        ),
        output=nn.Head(d, c.vocab_size),
        tie=("output.weight", "model.tok_embeddings.weight") if c.tie_word_embeddings else None,
    )
