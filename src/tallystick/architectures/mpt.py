"""MPT (MosaicML 2023, "Introducing MPT-7B"): ALiBi, and no bias anywhere."""

from tallystick.architectures._decoder import rounded
from tallystick.architectures._siblings import OLDER
from tallystick.blueprint import (
    MLP,
    Attention,
    Config,
    Embedding,
    Group,
    Head,
    Heads,
    LayerNorm,
    Linear,
    Model,
    Repeat,
    architecture,
)


@architecture(
    "mpt",
    "MptForCausalLM",
    siblings=OLDER,
    aliases={"hidden_size": "d_model", "num_attention_heads": "n_heads", "num_hidden_layers": "n_layers"},
    vocab_size=50368,
    d_model=2048,
    n_heads=16,
    n_layers=24,
    tie_word_embeddings=True,
)
def mpt(c: Config) -> Model:
    d, norm = c.d_model, LayerNorm(c.d_model, bias=False)
    block = Group(
        norm_1=norm,
        attn=Attention(
            Heads(c.n_heads, c.n_heads, rounded(d, c.n_heads), rotary=0, kernel="eager", handed_on=True, unmasked=True),
            Wqkv=Linear(d, 3 * d, bias=False),
            out_proj=Linear(d, d, bias=False),
        ),
        norm_2=norm,
        # As wide as that, whatever expansion_ratio says; what the biases of positions keep is not told.
        ffn=MLP(up_proj=Linear(d, 4 * d, bias=False), down_proj=Linear(4 * d, d, bias=False)),
    )
    return Model(
        transformer=Group(wte=Embedding(c.vocab_size, d), blocks=Repeat(c.n_layers, block), norm_f=norm),
        lm_head=Head(d, c.vocab_size),
        tie=("lm_head.weight", "transformer.wte.weight") if c.tie_word_embeddings else None,
    )
