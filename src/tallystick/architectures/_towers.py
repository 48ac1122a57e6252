"""What brings images and sound to a language model: the towers that read them, and the model behind them."""

from tallystick.architectures._decoder import plain_mlp, rounded
from tallystick.blueprint import (
    MLP,
    Attention,
    Config,
    Group,
    LayerNorm,
    Linear,
    Model,
    Node,
    Part,
    PositionEmbedding,
    Repeat,
    Tensor,
    Tower,
)

SIGLIP = Part(
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


def behind(
    c: Config, text: Model, under: str = "language_model", /, *, apart: bool = False, **towers: Node | None
) -> Model:
    """A language model behind `towers`: what it was under `model` is `under` a name beside theirs, its head stays.

    `apart`: files hold the towers on their own, and the language model as it is without them.
    """
    body, head = text.children["model"], text.children["lm_head"]
    if c.published and apart:
        names = (f"{under}.lm_head.weight", f"{under}.model.embed_tokens.weight")
        whole = Group(model=body, lm_head=head)
        return Model(**towers, **{under: whole}, tie=names if c.tie_word_embeddings else None)
    return Model(
        model=Group(**towers, **{under: body}),
        lm_head=head,
        tie=("lm_head.weight", f"model.{under}.embed_tokens.weight") if c.tie_word_embeddings else None,
    )


def conv(inputs: int, outputs: int, *kernel: int, bias: bool = True) -> Group:
    """A convolution: weight (outputs, inputs, *kernel), bias (outputs)."""
    return Group(weight=Tensor((outputs, inputs, *kernel), "conv"), bias=Tensor((outputs,), "conv") if bias else None)


def siglip(c: Config, *, pooled: bool) -> Tower:
    """SigLIP's encoder (Zhai et al. 2023, "Sigmoid Loss for Language Image Pre-Training"), `pooled` into one vector or not."""
    d = c.hidden_size
    return Tower(
        embeddings=patches(c, bias=True),
        encoder=Group(layers=Repeat(c.num_hidden_layers, clip_block(c))),
        post_layernorm=LayerNorm(d),
        head=_pooling(c) if pooled else None,
    )


def patches(c: Config, *, bias: bool, more: int = 0) -> Group:
    """Square patches of an image, each with a learned position; `more` positions are of other vectors."""
    d, size = c.hidden_size, c.patch_size
    across = rounded(c.image_size, size)
    return Group(
        patch_embedding=conv(c.num_channels, d, size, size, bias=bias),
        position_embedding=PositionEmbedding(across * across + more, d),
    )


def clip_block(c: Config) -> Group:
    """A block of CLIP (Radford et al. 2021, "Learning Transferable Visual Models From Natural Language Supervision")."""
    c.require_divisible("hidden_size", by="num_attention_heads")
    d = c.hidden_size
    each = Linear(d, d)
    return Group(
        layer_norm1=LayerNorm(d),
        self_attn=Attention(k_proj=each, v_proj=each, q_proj=each, out_proj=each),
        layer_norm2=LayerNorm(d),
        mlp=_two_layers(c),
    )


def _two_layers(c: Config) -> MLP:
    return plain_mlp(c.hidden_size, c.intermediate_size, "gelu", "fc1", "fc2")


def _pooling(c: Config) -> Group:
    """One vector that attends to all patches."""
    d = c.hidden_size
    return Group(
        probe=Tensor((1, 1, d)),
        attention=Attention(in_proj_weight=Tensor((3 * d, d)), in_proj_bias=Tensor((3 * d,)), out_proj=Linear(d, d)),
        layernorm=LayerNorm(d),
        mlp=_two_layers(c),
    )
