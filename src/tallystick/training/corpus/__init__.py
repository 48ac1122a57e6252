"""The text that a run is trained on: read, tokenised once, and dealt in batches."""
