"""Read quantised weights: their tensors, their logical shape, and a config's layout."""

# Config keys that state how weights are quantised: transformers', MLX's, and the key of older
# compressed-tensors.
KEYS = ("quantization_config", "quantization", "compression_config")
KEY = KEYS[0]
