"""Qwen3.5 (Qwen Team 2026), dense: its causal language model is the text alone, the whole has eyes before it."""

from tallystick.architectures._decoder import plain_mlp
from tallystick.architectures._towers import behind, conv, seeing
from tallystick.architectures.qwen3_5_text import qwen3_5_text
from tallystick.blueprint import (
    Attention,
    Config,
    Group,
    LayerNorm,
    Linear,
    Model,
    Part,
    PositionEmbedding,
    Repeat,
    Sibling,
    Tower,
    architecture,
    part_of,
)

EYES = Part(
    {
        "depth": 27,
        "hidden_size": 1152,
        "intermediate_size": 4304,
        "in_channels": 3,
        "patch_size": 16,
        "temporal_patch_size": 2,
        "spatial_merge_size": 2,
        "out_hidden_size": 3584,
        "num_position_embeddings": 2304,
    },
    aliases={"num_hidden_layers": "depth"},
)


def whole() -> dict[str, Sibling]:
    """The classes that see."""
    return seeing(_whole, {"tie_word_embeddings": False}, vision_config=EYES)


def _whole(c: Config, text: Model) -> Model:
    return behind(c, text, visual=_eyes(c.part("vision_config")))


@architecture("qwen3_5", "Qwen3_5ForCausalLM", siblings=whole(), parts={"text_config": part_of("qwen3_5_text")})
def qwen3_5(c: Config) -> Model:
    return qwen3_5_text(c.part("text_config"))


def _eyes(c: Config) -> Tower:
    """Cubes of a film, and a merger of neighbours."""
    d, size, merged = c.hidden_size, c.patch_size, c.hidden_size * c.spatial_merge_size * c.spatial_merge_size
    block = Group(
        norm1=LayerNorm(d),
        norm2=LayerNorm(d),
        attn=Attention(qkv=Linear(d, 3 * d), proj=Linear(d, d)),
        mlp=plain_mlp(d, c.intermediate_size, "gelu", "linear_fc1", "linear_fc2"),
    )
    return Tower(
        patch_embed=Group(proj=conv(c.in_channels, d, c.temporal_patch_size, size, size)),
        pos_embed=PositionEmbedding(c.num_position_embeddings, d),
        blocks=Repeat(c.depth, block),
        merger=Group(
            norm=LayerNorm(d), linear_fc1=Linear(merged, merged), linear_fc2=Linear(merged, c.out_hidden_size)
        ),
    )
