"""Read quantised weights: their tensors, their logical shape, and a config's layout."""
