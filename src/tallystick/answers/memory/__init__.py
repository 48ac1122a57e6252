"""Memory needed for inference or training, line by line."""
