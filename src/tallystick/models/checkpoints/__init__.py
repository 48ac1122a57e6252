"""Checkpoints of decoders: load and save those of Hugging Face, nanoGPT and llama2.c."""
