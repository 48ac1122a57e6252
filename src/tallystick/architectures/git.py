"""GIT: CLIP's vision tower and a decoder of BERT layers.

Source: Wang et al. 2022, "GIT: A Generative Image-to-text Transformer".
"""

from tallystick.architectures.kit.bert import embeddings
from tallystick.architectures.kit.towers import clip_block, patches
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, NestedConfig, architecture, nonnegative

VISION_CONFIG = NestedConfig(
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
    parts={"vision_config": VISION_CONFIG},
    vocab_size=30522,
    hidden_size=768,
    intermediate_size=3072,
    num_hidden_layers=6,
    num_attention_heads=12,
    max_position_embeddings=1024,
    num_image_with_embedding=nonnegative(None, nullable=True),
    tie_word_embeddings=False,
)
def git(c: Config) -> nn.Model:
    c.require_divisible("hidden_size", by="num_attention_heads")
    d, inner, vision = c.hidden_size, c.intermediate_size, c.part("vision_config")
    each = nn.Linear(d, d)
    block = nn.Module(
        # Image vectors, if any, precede the tokens and attend to one another.
        attention=nn.Attention(
            nn.Heads(c.num_attention_heads, c.num_attention_heads, d / c.num_attention_heads, rotary=0),
            self=nn.Module(query=each, key=each, value=each),
            output=nn.Module(dense=each, LayerNorm=nn.LayerNorm(d)),
        ),
        intermediate=nn.MLP(dense=nn.Linear(d, inner)),
        output=nn.MLP(dense=nn.Linear(inner, d), LayerNorm=nn.LayerNorm(d)),
    )
    images = c.num_image_with_embedding
    return nn.Model(
        git=nn.Module(
            embeddings=embeddings(c, types=False),
            image_encoder=nn.Tower(vision_model=_clip(vision)),
            encoder=nn.Module(layer=nn.Repeat(c.num_hidden_layers, block)),
            visual_projection=nn.Tower(
                visual_projection=nn.Module(**{"0": nn.Linear(vision.hidden_size, d), "1": nn.LayerNorm(d)})
            ),
            img_temporal_embedding=None if images is None else _moments(images, vision.hidden_size),
        ),
        output=nn.Head(d, c.vocab_size, bias=True),
        tie=("output.weight", "git.embeddings.word_embeddings.weight") if c.tie_word_embeddings else None,
    )


def _moments(images: int, width: int) -> nn.ModuleList:
    """One temporal position embedding per image of a sequence."""
    return nn.ModuleList((images, nn.Parameter((1, 1, width), "position_embedding")))


def _clip(c: Config) -> nn.Module:
    """CLIP's encoder; `pre_layrnorm` is spelled as in CLIP's code."""
    d = c.hidden_size
    return nn.Module(
        embeddings=nn.Module(class_embedding=nn.Parameter((d,)), **patches(c, bias=False, more=1).children),
        pre_layrnorm=nn.LayerNorm(d),
        encoder=nn.Module(layers=nn.Repeat(c.num_hidden_layers, clip_block(c))),
        post_layernorm=nn.LayerNorm(d),
    )
