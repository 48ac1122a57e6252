"""Llama 3.2 Vision (Grattafiori et al. 2024, "The Llama 3 Herd of Models", section 7): the language model alone, which attends to images in some layers."""

from tallystick.architectures._decoder import SILU, attention, gated_mlp, heads, rounded, two_kinds
from tallystick.blueprint import (
    Attention,
    Config,
    Embedding,
    Group,
    Head,
    Model,
    Part,
    RMSNorm,
    Tensor,
    architecture,
)

IMAGES = 8  # rows of the embedding beside the vocabulary
CROSSING = [3, 8, 13, 18, 23, 28, 33, 38]


@architecture(
    "mllama",
    "MllamaForCausalLM",
    scored=False,
    parts={
        "text_config": Part(
            {
                "vocab_size": 128256,
                "hidden_size": 4096,
                "intermediate_size": 14336,
                "num_hidden_layers": 40,
                "num_attention_heads": 32,
                "num_key_value_heads": 8,
                "cross_attention_layers": None,
            },
            running=SILU,
        )
    },
)
def mllama(c: Config) -> Model:
    text = c.part("text_config")
    d, norm = text.hidden_size, RMSNorm(text.hidden_size)
    runs = heads(text, rounded(d, text.num_attention_heads))
    around = {
        "mlp": gated_mlp(d, text.intermediate_size, text.hidden_act),
        "input_layernorm": norm,
        "post_attention_layernorm": norm,
    }
    crossing = Group(
        cross_attn=_of_images(text, attention(text, runs), runs.size),
        cross_attn_attn_gate=Tensor((1,), "attention"),
        cross_attn_mlp_gate=Tensor((1,), "mlp"),
        **around,
    )
    return Model(
        model=Group(
            embed_tokens=Embedding(text.vocab_size + IMAGES, d),
            layers=two_kinds(text, _crossing(text), crossing, Group(self_attn=attention(text, runs), **around)),
            norm=norm,
        ),
        lm_head=Head(d, text.vocab_size),
    )


def _crossing(c: Config) -> list[int]:
    """The layers that attend to images, where there are some, in place of the tokens."""
    listed = CROSSING if c.cross_attention_layers is None else c.cross_attention_layers
    if not isinstance(listed, list) or not all(type(layer) is int for layer in listed):
        raise c.refuse("cross_attention_layers must list the numbers of the layers that attend to images, or be null")
    return listed


def _of_images(c: Config, projections: Attention, size: int) -> Attention:
    """Keys and values are of images: none of the tokens' are kept."""
    return Attention(**projections.children, q_norm=RMSNorm(size), k_norm=RMSNorm(size))
