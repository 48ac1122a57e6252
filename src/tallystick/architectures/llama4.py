"""Llama 4 (Meta 2025, "The Llama 4 herd"): text model and vision tower.

`Llama4ForCausalLM` is the text model; `Llama4ForConditionalGeneration` adds the vision tower.
"""

from tallystick.architectures import kit
from tallystick.architectures.kit.towers import WHOLE
from tallystick.architectures.llama4_text import llama4_text
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, ModelVariant, NestedConfig, architecture, part_of

VISION_CONFIG = NestedConfig(
    {
        "hidden_size": 768,
        "num_hidden_layers": 34,
        "num_attention_heads": 16,
        "num_channels": 3,
        "intermediate_size": 5632,
        "vision_output_dim": 7680,
        "image_size": 448,
        "patch_size": 14,
        "projector_input_dim": 4096,
        "projector_output_dim": 4096,
    }
)


def _whole(c: Config, text: nn.Model) -> nn.Model:
    vision = c.part("vision_config")
    return nn.Model(
        text.irregular,
        vision_model=_vision_tower(vision),
        multi_modal_projector=nn.Tower(
            linear_1=nn.Linear(vision.vision_output_dim, c.part("text_config").hidden_size, bias=False)
        ),
        language_model=nn.Module(**text.children),
        tie={f"language_model.{tied}": f"language_model.{to}" for tied, to in text.ties.items()},
    )


@architecture(
    "llama4",
    "Llama4ForCausalLM",
    variants={"ForConditionalGeneration": ModelVariant(_whole, WHOLE, parts={"vision_config": VISION_CONFIG})},
    parts={"text_config": part_of("llama4_text")},
)
def llama4(c: Config) -> nn.Model:
    return llama4_text(c.part("text_config"))


def _vision_tower(c: Config) -> nn.Tower:
    """The vision tower: linear patch embedding, and an adapter that merges neighbouring patches."""
    d, size, inner = c.hidden_size, c.patch_size, c.intermediate_size
    across, given, out = kit.rounded(c.image_size, size), c.projector_input_dim, c.projector_output_dim
    heads = c.num_attention_heads * kit.rounded(d, c.num_attention_heads)
    each = nn.Linear(d, heads)
    block = nn.Module(
        self_attn=nn.Attention(q_proj=each, k_proj=each, v_proj=each, o_proj=nn.Linear(heads, d)),
        mlp=kit.plain_mlp(d, inner, "gelu", "fc1", "fc2"),
        input_layernorm=nn.LayerNorm(d),
        post_attention_layernorm=nn.LayerNorm(d),
    )
    return nn.Tower(
        class_embedding=nn.Parameter((d,)),
        positional_embedding_vlm=nn.Parameter((across * across + 1, d), "position_embedding"),
        patch_embedding=nn.Module(linear=nn.Linear(c.num_channels * size * size, d, bias=False)),
        layernorm_pre=nn.LayerNorm(d),
        layernorm_post=nn.LayerNorm(d),
        model=nn.Module(layers=nn.Repeat(c.num_hidden_layers, block)),
        vision_adapter=nn.Module(
            mlp=nn.MLP(fc1=nn.Linear(inner, given, bias=False), fc2=nn.Linear(out, out, bias=False))
        ),
    )
