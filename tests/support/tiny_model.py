"""A tiny model of nobody's library."""

from torch import nn


class Tiny(nn.Module):
    """A decoder in nanoGPT's names, tied."""

    def __init__(self, *, tie=True):
        super().__init__()
        block = {
            "ln_1": nn.LayerNorm(8),
            "attn": nn.ModuleDict({"c_attn": nn.Linear(8, 24), "c_proj": nn.Linear(8, 8)}),
        }
        block["mlp"] = nn.ModuleDict({"c_fc": nn.Linear(8, 32), "c_proj": nn.Linear(32, 8)})
        self.transformer = nn.ModuleDict({"wte": nn.Embedding(50, 8), "h": nn.ModuleList([nn.ModuleDict(block)])})
        self.lm_head = nn.Linear(8, 50, bias=False)
        if tie:
            self.lm_head.weight = self.transformer.wte.weight
