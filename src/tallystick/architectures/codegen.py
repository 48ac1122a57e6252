"""CodeGen (Nijkamp et al. 2022, "CodeGen: An Open Large Language Model for Code"): GPT-J with one projection for all three."""

from tallystick.architectures._decoder import plain_mlp, transformer
from tallystick.blueprint import (
    Attention,
    Config,
    Heads,
    LayerNorm,
    Linear,
    Model,
    Parallel,
    architecture,
    maybe,
    natural,
)


@architecture(
    "codegen",
    "CodeGenForCausalLM",
    aliases={"hidden_size": "n_embd", "num_attention_heads": "n_head", "num_hidden_layers": "n_layer"},
    running={"activation_function": "gelu_new", "rotary_dim": natural(64)},
    vocab_size=50400,
    n_embd=4096,
    n_layer=28,
    n_head=16,
    n_inner=maybe(),
    tie_word_embeddings=False,
)
def codegen(c: Config) -> Model:
    c.require_divisible("n_embd", by="n_head")
    d = c.n_embd
    # Attention and MLP run side by side behind one norm.
    block = Parallel(
        ln_1=LayerNorm(d),
        attn=Attention(
            Heads(c.n_head, c.n_head, d / c.n_head, rotary=c.rotary_dim, softmax="products", handed_on=True),
            qkv_proj=Linear(d, 3 * d, bias=False),
            out_proj=Linear(d, d, bias=False),
        ),
        mlp=plain_mlp(d, c.n_inner or 4 * d, c.activation_function, "fc_in", "fc_out"),
    )
    return transformer(c, d, block, depth="n_layer", head_bias=True)
