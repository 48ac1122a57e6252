"""nanochat: norms without scales, also after the embedding, and squared ReLU."""

from dataclasses import replace

from tallystick.core.config import Config
from tallystick.models.checkpoints.names import Rule
from tallystick.models.config import DecoderConfig
from tallystick.models.families import family
from tallystick.models.families._llama_like import ATTENTION, FRAME, KEYS, llama_like, rope_of

MLP = (
    Rule("model.layers.{}.mlp.fc1.weight", "layers.{}.mlp.up_proj.weight"),
    Rule("model.layers.{}.mlp.fc2.weight", "layers.{}.mlp.down_proj.weight"),
)


@family("nanochat", (*FRAME, *ATTENTION, *MLP), **KEYS)
def nanochat(c: Config) -> DecoderConfig:
    return llama_like(
        c,
        activation=c.hidden_act,
        gated=False,
        qkv_bias=c.attention_bias,
        output_bias=c.attention_bias,
        norm_scale=False,
        embedding_norm=True,
        qk_norm="turned",
        rope=replace(rope_of(c), backwards=True),
        logit_cap=c.final_logit_softcapping or None,
    )
