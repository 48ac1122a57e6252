"""GPT-NeoX Japanese (ABEJA 2022): GPT-NeoX without biases, but for one behind the last attention."""

from tallystick.architectures._decoder import rounded
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
    Stack,
    Tensor,
    architecture,
)


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
def gpt_neox_japanese(c: Config) -> Model:
    d = c.hidden_size
    return Model(
        gpt_neox_japanese=Group(
            embed_in=Embedding(c.vocab_size, d),
            layers=Stack((c.num_hidden_layers - 1, _block(c)), (1, _block(c, dense_bias=Tensor((d,))))),
            final_layer_norm=LayerNorm(d),
        ),
        embed_out=Head(d, c.vocab_size),
        tie=("embed_out.weight", "gpt_neox_japanese.embed_in.weight") if c.tie_word_embeddings else None,
    )


def _block(c: Config, **behind: Tensor) -> Group:
    """A block, and what is added `behind` its attention."""
    d, heads = c.hidden_size, c.num_attention_heads
    inner = c.intermediate_multiple_size * d
    return Group(
        input_layernorm=LayerNorm(d),
        post_attention_layernorm=LayerNorm(d),
        attention=Attention(
            Heads(heads, heads, rounded(d, heads)),
            query_key_value=Linear(d, 3 * d, bias=False),
            dense=Linear(d, d, bias=False),
            **behind,
        ),
        mlp=MLP(
            dense_h_to_4h=Linear(d, inner, bias=False),
            dense_4h_to_h=Linear(inner, d, bias=False),
        ),
    )
