"""Checkpoints of a run: what they hold, and how each rank writes and reads its slices."""
