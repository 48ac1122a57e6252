"""Llama 4 (Meta 2025, "The Llama 4 herd"): its causal language model is the text alone, the whole has eyes before it."""

from tallystick.architectures._decoder import plain_mlp, rounded
from tallystick.architectures._towers import WHOLE
from tallystick.architectures.llama4_text import llama4_text
from tallystick.blueprint import (
    MLP,
    Attention,
    Config,
    Group,
    LayerNorm,
    Linear,
    Model,
    Part,
    Repeat,
    Sibling,
    Tensor,
    Tower,
    architecture,
    part_of,
)

EYES = Part(
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


def _whole(c: Config, text: Model) -> Model:
    eyes = c.part("vision_config")
    return Model(
        text.irregular,
        vision_model=_eyes(eyes),
        multi_modal_projector=Tower(
            linear_1=Linear(eyes.vision_output_dim, c.part("text_config").hidden_size, bias=False)
        ),
        language_model=Group(**text.children),
        tie={f"language_model.{tied}": f"language_model.{to}" for tied, to in text.ties.items()},
    )


@architecture(
    "llama4",
    "Llama4ForCausalLM",
    siblings={"ForConditionalGeneration": Sibling(_whole, WHOLE, parts={"vision_config": EYES})},
    parts={"text_config": part_of("llama4_text")},
)
def llama4(c: Config) -> Model:
    return llama4_text(c.part("text_config"))


def _eyes(c: Config) -> Tower:
    """Patches as rows of pixels, and a projection of neighbours put together."""
    d, size, inner = c.hidden_size, c.patch_size, c.intermediate_size
    across, given, out = rounded(c.image_size, size), c.projector_input_dim, c.projector_output_dim
    heads = c.num_attention_heads * rounded(d, c.num_attention_heads)
    each = Linear(d, heads)
    block = Group(
        self_attn=Attention(q_proj=each, k_proj=each, v_proj=each, o_proj=Linear(heads, d)),
        mlp=plain_mlp(d, inner, "gelu", "fc1", "fc2"),
        input_layernorm=LayerNorm(d),
        post_attention_layernorm=LayerNorm(d),
    )
    return Tower(
        class_embedding=Tensor((d,)),
        positional_embedding_vlm=Tensor((across * across + 1, d), "position_embedding"),
        patch_embedding=Group(linear=Linear(c.num_channels * size * size, d, bias=False)),
        layernorm_pre=LayerNorm(d),
        layernorm_post=LayerNorm(d),
        model=Group(layers=Repeat(c.num_hidden_layers, block)),
        vision_adapter=Group(mlp=MLP(fc1=Linear(inner, given, bias=False), fc2=Linear(out, out, bias=False))),
    )
