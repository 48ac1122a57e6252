"""Falcon Mamba (TII 2024, "Falcon Mamba: The First Competitive Attention-free 7B Language Model"): Mamba, with norms that learn nothing."""

from tallystick.architectures.mamba import KEYS, mamba
from tallystick.blueprint import Config, Model, architecture


@architecture("falcon_mamba", "FalconMambaForCausalLM", **KEYS)
def falcon_mamba(c: Config) -> Model:
    return mamba(c)
