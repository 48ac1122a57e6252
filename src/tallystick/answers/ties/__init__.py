"""Which tensors are tied, which should be, and which ties are lost."""
