"""PyTorch models: decoders that read and write Hugging Face's weights, and those of a first course."""

from tallystick.models.config import DecoderConfig
from tallystick.models.decoder import Decoder

__all__ = ["Decoder", "DecoderConfig"]
