"""MVP's decoder: BART's; its variants can have learned prompts.

Source: Tang et al. 2022, "MVP: Multi-task Supervised Pre-training for Natural Language
Generation".
"""

from tallystick.architectures.kit.bart import beside_encoder, learned
from tallystick.architectures.kit.encoder_decoder import whole
from tallystick.architectures.kit.variants import product
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture

PROMPTS = {"use_prompt": False, "prompt_length": 100, "prompt_mid_dim": 800}


def _prompts(c: Config) -> dict[str, nn.Node]:
    """Prompt keys and values of all decoder layers, from learned vectors; none for the encoder."""
    if not c.use_prompt:
        return {}
    d, waist = c.d_model, c.prompt_mid_dim
    trans = nn.Module(**{"0": product(d, waist), "2": product(waist, 2 * c.decoder_layers * d)})
    prompt = nn.Module(prompt_embedding=nn.Embedding(c.prompt_length, d), prompt_trans=trans)
    return {"self_attn_prompt": prompt, "cross_attn_prompt": prompt}


@architecture(
    "mvp",
    "MvpForCausalLM",
    variants=whole(12, 4096, 16, prompts=_prompts, more=PROMPTS),
    aliases={"hidden_size": "d_model"},
    vocab_size=50267,
    max_position_embeddings=1024,
    decoder_layers=12,
    decoder_ffn_dim=4096,
    decoder_attention_heads=16,
    d_model=1024,
    tie_word_embeddings=True,
)
def mvp(c: Config) -> nn.Model:
    return beside_encoder(c, learned(c), embedding_norm=True)
