"""Build non-native model types with transformers on the meta device, in a subprocess."""
