"""MOSS-Transcribe-Diarize (OpenMOSS 2026): Whisper's encoder, an adaptor and Qwen3."""

from tallystick.architectures.kit.bart import layer
from tallystick.architectures.kit.towers import behind, conv
from tallystick.architectures.qwen3 import qwen3
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, NestedConfig, architecture, part_of

AUDIO_CONFIG = NestedConfig(
    {
        "hidden_size": 1024,
        "intermediate_size": 4096,
        "num_hidden_layers": 24,
        "num_attention_heads": 16,
        "num_mel_bins": 80,
        "max_source_positions": 1500,
    },
    aliases={
        "d_model": "hidden_size",
        "encoder_layers": "num_hidden_layers",
        "encoder_attention_heads": "num_attention_heads",
        "encoder_ffn_dim": "intermediate_size",
    },
)
TEXT = part_of(
    "qwen3",
    tied_above=True,
    own_type=True,
    unstated={
        "hidden_size": 1024,
        "intermediate_size": 3072,
        "num_hidden_layers": 28,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
    },
)


@architecture(
    "moss_transcribe_diarize",
    "MossTranscribeDiarizeForConditionalGeneration",
    parts={"text_config": TEXT, "audio_config": AUDIO_CONFIG},
    audio_merge_size=4,
    projector_bias=True,
    tie_word_embeddings=True,
)
def moss_transcribe_diarize(c: Config) -> nn.Model:
    text, audio, bias = c.part("text_config"), c.part("audio_config"), c.projector_bias
    d = text.hidden_size
    return behind(
        c,
        qwen3(text),
        audio_tower=_whisper(audio),
        multi_modal_projector=nn.Tower(
            linear_1=nn.Linear(audio.hidden_size * c.audio_merge_size, d, bias=bias),
            linear_2=nn.Linear(d, d, bias=bias),
            norm=nn.LayerNorm(d),
        ),
    )


def _whisper(c: Config) -> nn.Tower:
    """Whisper's encoder (Radford et al. 2022); sinusoidal positions, stored and not trained."""
    c.require_divisible("hidden_size", by="num_attention_heads")
    d = c.hidden_size
    block = layer(d, None, c.intermediate_size, None, key_bias=False)
    return nn.Tower(
        conv1=conv(c.num_mel_bins, d, 3),
        conv2=conv(d, d, 3),
        embed_positions=nn.Module(
            weight=nn.Parameter((c.max_source_positions, d), "position_embedding", trainable=False)
        ),
        layers=nn.Repeat(c.num_hidden_layers, block),
        layer_norm=nn.LayerNorm(d),
    )
