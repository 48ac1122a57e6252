"""GPT-NeoX Japanese (ABEJA 2022): GPT-NeoX without biases, except after the last attention."""

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture


@architecture(
    "gpt_neox_japanese",
    "GPTNeoXJapaneseForCausalLM",
    vocab_size=32000,
    hidden_size=2560,
    num_hidden_layers=32,
    num_attention_heads=32,
    intermediate_multiple_size=4,
    tie_word_embeddings=True,
)
def gpt_neox_japanese(c: Config) -> nn.Model:
    d = c.hidden_size
    return nn.Model(
        gpt_neox_japanese=nn.Module(
            embed_in=nn.Embedding(c.vocab_size, d),
            layers=nn.ModuleList((c.num_hidden_layers - 1, _block(c)), (1, _block(c, dense_bias=nn.Parameter((d,))))),
            final_layer_norm=nn.LayerNorm(d),
        ),
        embed_out=nn.Head(d, c.vocab_size),
        tie=("embed_out.weight", "gpt_neox_japanese.embed_in.weight") if c.tie_word_embeddings else None,
    )


def _block(c: Config, **behind: nn.Tensor) -> nn.Module:
    """A block; `behind` are tensors added to its attention."""
    d, heads = c.hidden_size, c.num_attention_heads
    inner = c.intermediate_multiple_size * d
    return nn.Module(
        input_layernorm=nn.LayerNorm(d),
        post_attention_layernorm=nn.LayerNorm(d),
        attention=nn.Attention(
            nn.Heads(heads, heads, kit.rounded(d, heads)),
            query_key_value=nn.Linear(d, 3 * d, bias=False),
            dense=nn.Linear(d, d, bias=False),
            **behind,
        ),
        mlp=nn.MLP(
            dense_h_to_4h=nn.Linear(d, inner, bias=False),
            dense_4h_to_h=nn.Linear(inner, d, bias=False),
        ),
    )
