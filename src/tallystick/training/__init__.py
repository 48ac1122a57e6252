"""Training: data, optimizer groups, the loop, checkpoints, many devices."""
