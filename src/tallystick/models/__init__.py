"""PyTorch models: decoders that load and save Hugging Face weights, and teaching models."""

from tallystick.extras import needing
from tallystick.versions import require

require("torch", to="to run models")  # before the imports below, which fail under an older torch
with needing("tallystick.models", "models"):
    from tallystick.models.checkpoints.loading import load_pretrained
    from tallystick.models.checkpoints.saving import save_pretrained
    from tallystick.models.config import DecoderConfig
    from tallystick.models.decoder import Decoder
    from tallystick.models.sampling import Sampling
    from tallystick.models.surgery import crop_positions, grow_vocabulary, set_dropout
    from tallystick.models.text_model import TextModel

__all__ = [
    "Decoder",
    "DecoderConfig",
    "Sampling",
    "TextModel",
    "crop_positions",
    "grow_vocabulary",
    "load_pretrained",
    "save_pretrained",
    "set_dropout",
]
