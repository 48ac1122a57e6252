"""PyTorch models: decoders that read and write Hugging Face's weights, and those of a first course."""

from tallystick.models.checkpoint import load_pretrained
from tallystick.models.config import DecoderConfig
from tallystick.models.decoder import Decoder
from tallystick.models.saving import save_pretrained
from tallystick.models.surgery import crop_positions, grow_vocabulary, set_dropout

__all__ = [
    "Decoder",
    "DecoderConfig",
    "crop_positions",
    "grow_vocabulary",
    "load_pretrained",
    "save_pretrained",
    "set_dropout",
]
