"""Interpret pickles of torch without running any of their code."""
