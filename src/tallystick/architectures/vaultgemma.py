"""VaultGemma: Gemma 2 without post-norms.

Source: Google 2025, "VaultGemma: A Differentially Private Gemma Model".
"""

from tallystick.architectures import kit
from tallystick.architectures.gemma2 import RUNNING, attends
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture


@architecture(
    "vaultgemma",
    "VaultGemmaForCausalLM",
    running=RUNNING,
    vocab_size=256000,
    hidden_size=2304,
    intermediate_size=9216,
    num_hidden_layers=26,
    num_attention_heads=8,
    num_key_value_heads=4,
    head_dim=256,
    attention_bias=False,
    tie_word_embeddings=True,
)
def vaultgemma(c: Config) -> nn.Model:
    norm = nn.RMSNorm(c.hidden_size, kind="gemma")
    block = nn.Module(
        self_attn=attends(c),
        mlp=kit.gated_mlp(c.hidden_size, c.intermediate_size, c.hidden_activation),
        input_layernorm=norm,
        pre_feedforward_layernorm=norm,
    )
    return kit.decoder(c, block, norm, capped=bool(c.final_logit_softcapping))
