"""CodeGen: GPT-J with one fused query, key and value projection.

Source: Nijkamp et al. 2022, "CodeGen: An Open Large Language Model for Code".
"""

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, nonnegative, optional


@architecture(
    "codegen",
    "CodeGenForCausalLM",
    aliases={"hidden_size": "n_embd", "num_attention_heads": "n_head", "num_hidden_layers": "n_layer"},
    running={"activation_function": "gelu_new", "rotary_dim": nonnegative(64)},
    vocab_size=50400,
    n_embd=4096,
    n_layer=28,
    n_head=16,
    n_inner=optional(),
    tie_word_embeddings=False,
)
def codegen(c: Config) -> nn.Model:
    c.require_divisible("n_embd", by="n_head")
    d = c.n_embd
    # Attention and MLP run in parallel after one norm.
    block = nn.ParallelBlock(
        ln_1=nn.LayerNorm(d),
        attn=nn.Attention(
            nn.Heads(c.n_head, c.n_head, d / c.n_head, rotary=c.rotary_dim),
            qkv_proj=nn.Linear(d, 3 * d, bias=False),
            out_proj=nn.Linear(d, d, bias=False),
        ),
        mlp=kit.plain_mlp(d, c.n_inner or 4 * d, c.activation_function, "fc_in", "fc_out"),
    )
    return kit.transformer(c, d, block, depth="n_layer", head_bias=True)
