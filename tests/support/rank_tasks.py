"""What the tests run in several processes: functions that a rank finds by their names."""

from __future__ import annotations

import sys
import threading

import torch
from torch import distributed, nn

from tallystick.live.subjects import seeded


def broken_on_one():
    if distributed.get_rank() == 1:
        raise ValueError("broken\non purpose")


def hanging():
    threading.Event().wait()


class Own(nn.Module):
    """A language model of nobody's library: a body of layers without a ModuleList, and a tied
    head.
    """

    def __init__(self, tokens, tied):
        super().__init__()
        self.tok_emb = nn.Embedding(tokens, 8)
        self.body = nn.Sequential(nn.Linear(8, 8), nn.Tanh())
        self.out_head = nn.Linear(8, tokens, bias=False)
        if tied:
            self.out_head.weight = self.tok_emb.weight

    def forward(self, ids):
        return self.out_head(self.body(self.tok_emb(ids).cumsum(1))), None


def own(tokens=40, tied=True):
    sys.stdout.write("noise")
    return Own(tokens, tied)


def sharded_gradient(ids):
    """The tied gradient, whole, of a model whose body and root are sharded."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    model, mesh = seeded(own), init_device_mesh("cpu", (2,))
    fully_shard(model.body, mesh=mesh)
    fully_shard(model, mesh=mesh)
    model(torch.tensor([ids]))[0].sum().backward()
    weight = model.tok_emb.weight
    local = list(weight.to_local().shape)
    return [distributed.get_rank(), model.out_head.weight is weight, local, weight.grad.full_tensor().tolist()]


ONE = Own(40, True)


def two_inputs():
    """A tied model that takes more than token ids."""
    model = Own(40, True)
    model.forward = lambda ids, mask: mask
    return model
