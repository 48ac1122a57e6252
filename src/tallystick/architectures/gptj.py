"""GPT-J: parallel attention and MLP, rotary positions.

Source: Wang and Komatsuzaki 2021, "GPT-J-6B: A 6 Billion Parameter Autoregressive Language
Model".
"""

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, nonnegative, optional


@architecture(
    "gptj",
    "GPTJForCausalLM",
    aliases={"hidden_size": "n_embd", "num_attention_heads": "n_head", "num_hidden_layers": "n_layer"},
    running={"activation_function": "gelu_new", "rotary_dim": nonnegative(64, nullable=True)},
    vocab_size=50400,
    n_embd=4096,
    n_layer=28,
    n_head=16,
    n_inner=optional(),
    tie_word_embeddings=False,
)
def gptj(c: Config) -> nn.Model:
    c.require_divisible("n_embd", by="n_head")
    d = c.n_embd
    inner = c.n_inner or 4 * d
    # Attention and MLP run in parallel after one norm.
    block = nn.ParallelBlock(
        ln_1=nn.LayerNorm(d),
        attn=nn.Attention(
            nn.Heads(c.n_head, c.n_head, d / c.n_head, rotary=c.rotary_dim),
            k_proj=nn.Linear(d, d, bias=False),
            v_proj=nn.Linear(d, d, bias=False),
            q_proj=nn.Linear(d, d, bias=False),
            out_proj=nn.Linear(d, d, bias=False),
        ),
        mlp=kit.plain_mlp(d, inner, c.activation_function, "fc_in", "fc_out"),
    )
    return kit.transformer(c, d, block, depth="n_layer", head_bias=True)
