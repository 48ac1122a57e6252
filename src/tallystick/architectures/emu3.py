"""Emu3: Llama's tensors; the full model adds an image tokenizer (VQ-VAE).

Source: BAAI 2024, "Emu3: Next-Token Prediction is All You Need".
"""

from tallystick.architectures.granite import granite
from tallystick.architectures.kit.emu3_images import IMAGES, images
from tallystick.architectures.kit.towers import behind, seeing
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, optional, part_of

TEXT = part_of(
    "granite",
    vocab_size=184622,
    intermediate_size=14336,
    num_key_value_heads=optional(8),
)


def _whole(c: Config, text: nn.Model) -> nn.Model:
    return behind(c, text, "text_model", apart=True, vqmodel=images(c.part("vq_config")))


@architecture(
    "emu3",
    "Emu3ForCausalLM",
    variants=seeing(_whole, {"tie_word_embeddings": False}, vq_config=IMAGES),
    parts={"text_config": TEXT},
    running={"vocabulary_map": None},
)
def emu3(c: Config) -> nn.Model:
    return granite(c.part("text_config"))
