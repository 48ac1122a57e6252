"""GPT-1: post-norms, and no final norm.

Source: Radford et al. 2018, "Improving Language Understanding by Generative Pre-Training".
"""

from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture


@architecture(
    "openai-gpt",
    "OpenAIGPTLMHeadModel",
    aliases={
        "hidden_size": "n_embd",
        "max_position_embeddings": "n_positions",
        "num_attention_heads": "n_head",
        "num_hidden_layers": "n_layer",
    },
    vocab_size=40478,
    n_positions=512,
    n_embd=768,
    n_layer=12,
    n_head=12,
    tie_word_embeddings=True,
)
def openai_gpt(c: Config) -> nn.Model:
    c.require_divisible("n_embd", by="n_head")
    d = c.n_embd
    block = nn.Module(
        attn=nn.Attention(
            nn.Heads(c.n_head, c.n_head, d / c.n_head, rotary=0),
            c_attn=nn.Conv1D(d, 3 * d),
            c_proj=nn.Conv1D(d, d),
        ),
        ln_1=nn.LayerNorm(d),
        mlp=nn.MLP(c_fc=nn.Conv1D(d, 4 * d), c_proj=nn.Conv1D(4 * d, d)),
        ln_2=nn.LayerNorm(d),
    )
    return nn.Model(
        transformer=nn.Module(
            tokens_embed=nn.Embedding(c.vocab_size, d),
            positions_embed=nn.PositionEmbedding(c.n_positions, d),
            h=nn.Repeat(c.n_layer, block),
        ),
        lm_head=nn.Head(d, c.vocab_size),
        tie=("lm_head.weight", "transformer.tokens_embed.weight") if c.tie_word_embeddings else None,
    )
