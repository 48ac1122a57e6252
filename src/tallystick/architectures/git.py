"""GIT (Wang et al. 2022, "GIT: A Generative Image-to-text Transformer"): CLIP's tower, and a decoder of BERT's layers."""

from tallystick.architectures._bert import embeddings
from tallystick.architectures._towers import clip_block, patches
from tallystick.blueprint import (
    MLP,
    Attention,
    Config,
    Group,
    Head,
    Heads,
    LayerNorm,
    Linear,
    Model,
    Part,
    Repeat,
    Stack,
    Tensor,
    Tower,
    architecture,
    natural,
)

EYES = Part(
    {
        "hidden_size": 768,
        "intermediate_size": 3072,
        "num_hidden_layers": 12,
        "num_attention_heads": 12,
        "num_channels": 3,
        "image_size": 224,
        "patch_size": 16,
    }
)


@architecture(
    "git",
    "GitForCausalLM",
    parts={"vision_config": EYES},
    vocab_size=30522,
    hidden_size=768,
    intermediate_size=3072,
    num_hidden_layers=6,
    num_attention_heads=12,
    max_position_embeddings=1024,
    num_image_with_embedding=natural(None, nullable=True),
    tie_word_embeddings=False,
)
def git(c: Config) -> Model:
    c.require_divisible("hidden_size", by="num_attention_heads")
    d, inner, eyes = c.hidden_size, c.intermediate_size, c.part("vision_config")
    each = Linear(d, d)
    block = Group(
        # The vectors of an image stand before the tokens, if there is one, and see one another.
        attention=Attention(
            Heads(c.num_attention_heads, c.num_attention_heads, d / c.num_attention_heads, rotary=0),
            self=Group(query=each, key=each, value=each),
            output=Group(dense=each, LayerNorm=LayerNorm(d)),
        ),
        intermediate=MLP(dense=Linear(d, inner)),
        output=MLP(dense=Linear(inner, d), LayerNorm=LayerNorm(d)),
    )
    images = c.num_image_with_embedding
    return Model(
        git=Group(
            embeddings=embeddings(c, types=False),
            image_encoder=Tower(vision_model=_clip(eyes)),
            encoder=Group(layer=Repeat(c.num_hidden_layers, block)),
            visual_projection=Tower(visual_projection=Group(**{"0": Linear(eyes.hidden_size, d), "1": LayerNorm(d)})),
            img_temporal_embedding=None if images is None else _moments(images, eyes.hidden_size),
        ),
        output=Head(d, c.vocab_size, bias=True),
        tie=("output.weight", "git.embeddings.word_embeddings.weight") if c.tie_word_embeddings else None,
    )


def _moments(images: int, width: int) -> Stack:
    """A vector for each image of a row of them."""
    return Stack((images, Tensor((1, 1, width), "position_embedding")))


def _clip(c: Config) -> Group:
    """CLIP's encoder, whose first norm has its name from CLIP's code."""
    d = c.hidden_size
    return Group(
        embeddings=Group(class_embedding=Tensor((d,)), **patches(c, bias=False, more=1).children),
        pre_layrnorm=LayerNorm(d),
        encoder=Group(layers=Repeat(c.num_hidden_layers, clip_block(c))),
        post_layernorm=LayerNorm(d),
    )
