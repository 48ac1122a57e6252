"""Llama 3.2 Vision: text model with cross-attention layers, and vision tower.

`MllamaForCausalLM` is the text model; `MllamaForConditionalGeneration` adds the vision tower.
Source: Grattafiori et al. 2024, "The Llama 3 Herd of Models", section 7.
"""

from tallystick.architectures import kit
from tallystick.architectures.kit.towers import behind, conv, seeing
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, NestedConfig, architecture

VISION_CONFIG = NestedConfig(
    {
        "hidden_size": 1280,
        "num_hidden_layers": 32,
        "num_global_layers": 8,
        "attention_heads": 16,
        "num_channels": 3,
        "intermediate_size": 5120,
        "vision_output_dim": 7680,
        "image_size": 448,
        "patch_size": 14,
        "max_num_tiles": 4,
        "supported_aspect_ratios": None,
    },
    aliases={"num_attention_heads": "attention_heads"},
)
RATIOS, TILES = 8, 4  # default number of aspect ratios, and the number of tiles they are for
IMAGES = 8  # additional rows of the token embedding
CROSSING = [3, 8, 13, 18, 23, 28, 33, 38]


def _whole(c: Config, text: nn.Model) -> nn.Model:
    vision = c.part("vision_config")
    return behind(
        c,
        text,
        apart=True,
        tied=False,
        vision_model=_vision_tower(vision),
        multi_modal_projector=nn.Tower(
            **nn.Linear(vision.vision_output_dim, c.part("text_config").hidden_size).children
        ),
    )


@architecture(
    "mllama",
    "MllamaForCausalLM",
    variants=seeing(_whole, vision_config=VISION_CONFIG),
    parts={
        "text_config": NestedConfig(
            {
                "vocab_size": 128256,
                "hidden_size": 4096,
                "intermediate_size": 14336,
                "num_hidden_layers": 40,
                "num_attention_heads": 32,
                "num_key_value_heads": 8,
                "cross_attention_layers": None,
            },
            running=kit.HIDDEN_ACT_SILU,
        )
    },
)
def mllama(c: Config) -> nn.Model:
    text = c.part("text_config")
    d, norm = text.hidden_size, nn.RMSNorm(text.hidden_size)
    runs = kit.heads(text, kit.rounded(d, text.num_attention_heads))
    around = {
        "mlp": kit.gated_mlp(d, text.intermediate_size, text.hidden_act),
        "input_layernorm": norm,
        "post_attention_layernorm": norm,
    }
    crossing = nn.Module(
        cross_attn=_of_images(text, kit.attention(text, runs), runs.size),
        cross_attn_attn_gate=nn.Parameter((1,), "attention"),
        cross_attn_mlp_gate=nn.Parameter((1,), "mlp"),
        **around,
    )
    return nn.Model(
        model=nn.Module(
            embed_tokens=nn.Embedding(text.vocab_size + IMAGES, d),
            layers=kit.two_kinds(
                text, _crossing(text), crossing, nn.Module(self_attn=kit.attention(text, runs), **around)
            ),
            norm=norm,
        ),
        lm_head=nn.Head(d, text.vocab_size),
    )


def _crossing(c: Config) -> list[int]:
    """Numbers of the layers with cross-attention to images instead of self-attention."""
    listed = CROSSING if c.cross_attention_layers is None else c.cross_attention_layers
    if not isinstance(listed, list) or not all(type(layer) is int for layer in listed):
        raise c.refuse("cross_attention_layers must list the numbers of the layers that attend to images, or be null")
    return listed


def _of_images(c: Config, projections: nn.Attention, size: int) -> nn.Attention:
    """Cross-attention: keys and values come from images, so no tokens are cached."""
    return nn.Attention(**projections.children, q_norm=nn.RMSNorm(size), k_norm=nn.RMSNorm(size))


def _vision_tower(c: Config) -> nn.Tower:
    """The vision tower: a transformer over single tiles, then a gated one over all tiles."""
    d, size = c.hidden_size, c.patch_size
    across, ratios, tiles = kit.rounded(c.image_size, size), _ratios(c), c.max_num_tiles
    seen = across * across + 1
    of_tile = nn.Module(
        gate=nn.Parameter((1,), "position_embedding"), embedding=nn.PositionEmbedding(ratios + 1, tiles * d)
    )
    return nn.Tower(
        class_embedding=nn.Parameter((d,)),
        patch_embedding=conv(c.num_channels, d, size, size, bias=False),
        gated_positional_embedding=nn.Module(
            gate=nn.Parameter((1,), "position_embedding"),
            embedding=nn.Parameter((seen, d), "position_embedding"),
            tile_embedding=nn.PositionEmbedding(ratios + 1, tiles * seen * d),
        ),
        pre_tile_positional_embedding=of_tile,
        post_tile_positional_embedding=of_tile,
        layernorm_pre=nn.LayerNorm(d),
        layernorm_post=nn.LayerNorm(d),
        transformer=nn.Module(layers=nn.Repeat(c.num_hidden_layers, _reads(c))),
        global_transformer=nn.Module(
            layers=nn.Repeat(
                c.num_global_layers,
                _reads(c, gate_attn=nn.Parameter((1,), "attention"), gate_ffn=nn.Parameter((1,), "mlp")),
            )
        ),
    )


def _reads(c: Config, **gates: nn.Tensor) -> nn.Module:
    """A layer of the vision tower."""
    d = c.hidden_size
    across = c.attention_heads * kit.rounded(d, c.attention_heads)
    each = nn.Linear(d, across, bias=False)
    return nn.Module(
        self_attn=nn.Attention(q_proj=each, k_proj=each, v_proj=each, o_proj=nn.Linear(across, d, bias=False)),
        mlp=kit.plain_mlp(d, c.intermediate_size, "gelu", "fc1", "fc2"),
        input_layernorm=nn.LayerNorm(d),
        post_attention_layernorm=nn.LayerNorm(d),
        **gates,
    )


def _ratios(c: Config) -> int:
    """The number of supported aspect ratios, in tiles of height × width."""
    listed = c.supported_aspect_ratios
    if listed is None:
        if c.max_num_tiles != TILES:
            raise c.refuse(
                f"max_num_tiles = {int(c.max_num_tiles)} needs its own supported_aspect_ratios: the default ones"
                f" are for {TILES}"
            )
        return RATIOS
    if not isinstance(listed, list) or not all(_is_ratio(ratio) for ratio in listed):
        raise c.refuse("supported_aspect_ratios must list pairs of integers, or be null")
    return len(listed)


def _is_ratio(value: object) -> bool:
    return isinstance(value, list) and all(type(side) is int for side in value)
