"""Multimodal models: vision and audio towers in front of a language model."""

from collections.abc import Callable, Mapping
from typing import Any

from tallystick.architectures.kit.attention import rounded
from tallystick.architectures.kit.mlp import plain_mlp
from tallystick.architectures.kit.variants import bare
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, ModelVariant, NestedConfig

SIGLIP = NestedConfig(
    {
        "hidden_size": 768,
        "intermediate_size": 3072,
        "num_hidden_layers": 12,
        "num_attention_heads": 12,
        "num_channels": 3,
        "image_size": 224,
        "patch_size": 16,
        "vision_use_head": True,
    },
    model_type="siglip_vision_model",
)

WHOLE = "its towers in addition to the text"  # what ForConditionalGeneration adds to ForCausalLM


def behind(
    c: Config,
    text: nn.Model,
    under: str = "language_model",
    /,
    *,
    apart: bool = False,
    tied: bool | None = None,
    **towers: nn.Node | None,
) -> nn.Model:
    """Return a language model with `towers` in front of it.

    The language model's body gets the name `under`, next to the towers. Its head keeps its name.

    Args:
        c: the config.
        text: the language model.
        under: the name of the language model.
        apart: whether checkpoints store the towers next to a complete language model.
        tied: whether the LM head is tied; None: as the top level of the config says.
        towers: the towers, by name.
    """
    tied = c.tie_word_embeddings if tied is None else tied
    body, head = text.children["model"], text.children["lm_head"]
    if c.published and apart:
        names = (f"{under}.lm_head.weight", f"{under}.model.embed_tokens.weight")
        whole = nn.Module(model=body, lm_head=head)
        return nn.Model(**towers, **{under: whole}, tie=names if tied else None)
    return nn.Model(
        model=nn.Module(**towers, **{under: body}),
        lm_head=head,
        tie=("lm_head.weight", f"model.{under}.embed_tokens.weight") if tied else None,
    )


def seeing(
    make: Callable[[Config, nn.Model], nn.Model], keys: Mapping[str, Any] | None = None, /, **parts: NestedConfig
) -> dict[str, ModelVariant]:
    """Return the multimodal variants of a type whose `ForCausalLM` is its text model alone.

    Args:
        make: adds the towers to the text model.
        keys: further keys at the top level of the config.
        **parts: the configs of the towers.
    """

    def headless(c: Config, text: nn.Model) -> nn.Model:
        return bare(make(c, text))

    read = keys or {}
    return {
        "ForConditionalGeneration": ModelVariant(make, WHOLE, read, parts=parts),
        "Model": ModelVariant(headless, f"{WHOLE}, and no LM head", read, parts=parts),
    }


def conv(inputs: int, outputs: int, *kernel: int, bias: bool = True) -> nn.Module:
    """Return a convolution: weight (outputs, inputs, *kernel), bias (outputs)."""
    return nn.Module(
        weight=nn.Parameter((outputs, inputs, *kernel), "conv"), bias=nn.Parameter((outputs,), "conv") if bias else None
    )


def siglip(c: Config, *, pooled: bool) -> nn.Tower:
    """Return SigLIP's encoder; `pooled`: with attention pooling into one vector.

    Source: Zhai et al. 2023, "Sigmoid Loss for Language Image Pre-Training".
    """
    d = c.hidden_size
    return nn.Tower(
        embeddings=patches(c, bias=True),
        encoder=nn.Module(layers=nn.Repeat(c.num_hidden_layers, clip_block(c))),
        post_layernorm=nn.LayerNorm(d),
        head=_pooling(c) if pooled else None,
    )


def patches(c: Config, *, bias: bool, more: int = 0) -> nn.Module:
    """Return the embedding of square patches and their learned positions.

    `more` is the number of positions for other vectors, such as a class embedding.
    """
    d, size = c.hidden_size, c.patch_size
    across = rounded(c.image_size, size)
    return nn.Module(
        patch_embedding=conv(c.num_channels, d, size, size, bias=bias),
        position_embedding=nn.PositionEmbedding(across * across + more, d),
    )


def clip_block(c: Config) -> nn.Module:
    """Return a block of CLIP.

    Source: Radford et al. 2021, "Learning Transferable Visual Models From Natural Language
    Supervision".
    """
    c.require_divisible("hidden_size", by="num_attention_heads")
    d = c.hidden_size
    each = nn.Linear(d, d)
    return nn.Module(
        layer_norm1=nn.LayerNorm(d),
        self_attn=nn.Attention(k_proj=each, v_proj=each, q_proj=each, out_proj=each),
        layer_norm2=nn.LayerNorm(d),
        mlp=_two_layers(c),
    )


def _two_layers(c: Config) -> nn.MLP:
    return plain_mlp(c.hidden_size, c.intermediate_size, "gelu", "fc1", "fc2")


def _pooling(c: Config) -> nn.Module:
    """Attention pooling: one learned query attends to all patches."""
    d = c.hidden_size
    return nn.Module(
        probe=nn.Parameter((1, 1, d)),
        attention=nn.Attention(
            in_proj_weight=nn.Parameter((3 * d, d)), in_proj_bias=nn.Parameter((3 * d,)), out_proj=nn.Linear(d, d)
        ),
        layernorm=nn.LayerNorm(d),
        mlp=_two_layers(c),
    )
