"""The layers of a decoder: attention, MLPs, norms, rotary embeddings, and one block of them."""
