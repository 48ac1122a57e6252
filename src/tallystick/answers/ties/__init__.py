"""Which tensors are tied, which should be, and which ties were lost."""
