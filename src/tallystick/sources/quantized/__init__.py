"""Quantised weights: which tensors store one, what it stands for, and what a config says will be stored."""
