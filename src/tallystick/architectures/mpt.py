"""MPT (MosaicML 2023, "Introducing MPT-7B"): ALiBi positions, no biases."""

from tallystick.architectures import kit
from tallystick.architectures.kit.variants import OLDER
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture


@architecture(
    "mpt",
    "MptForCausalLM",
    variants=OLDER,
    aliases={"hidden_size": "d_model", "num_attention_heads": "n_heads", "num_hidden_layers": "n_layers"},
    vocab_size=50368,
    d_model=2048,
    n_heads=16,
    n_layers=24,
    tie_word_embeddings=True,
)
def mpt(c: Config) -> nn.Model:
    d, norm = c.d_model, nn.LayerNorm(c.d_model, bias=False)
    block = nn.Module(
        norm_1=norm,
        attn=nn.Attention(
            nn.Heads(c.n_heads, c.n_heads, kit.rounded(d, c.n_heads), rotary=0),
            Wqkv=nn.Linear(d, 3 * d, bias=False),
            out_proj=nn.Linear(d, d, bias=False),
        ),
        norm_2=norm,
        # transformers uses 4 · d_model, whatever expansion_ratio says; ALiBi's activations are not
        # modelled.
        ffn=nn.MLP(up_proj=nn.Linear(d, 4 * d, bias=False), down_proj=nn.Linear(4 * d, d, bias=False)),
    )
    return nn.Model(
        transformer=nn.Module(wte=nn.Embedding(c.vocab_size, d), blocks=nn.Repeat(c.n_layers, block), norm_f=norm),
        lm_head=nn.Head(d, c.vocab_size),
        tie=("lm_head.weight", "transformer.wte.weight") if c.tie_word_embeddings else None,
    )
