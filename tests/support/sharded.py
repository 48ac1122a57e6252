"""What one of several ranks holds: FSDP2, DistributedDataParallel and tensor parallel ranks, in
real processes.
"""

from __future__ import annotations

import gc

import torch
from torch import distributed, nn

from autograd_memory import allocated, build, local, most_allocated, saved_bytes
from tallystick.live.ranks import ranks


def on_ranks(count, calls):
    """What each of so many real processes returns, for each of the calls: a function of this file
    and its arguments.
    """
    with ranks(count, "sharded:each", [calls]) as started:
        return list(zip(*started.results(), strict=True))


def each(calls):
    """What functions of this file return, each called with its arguments, in one group of
    processes.
    """
    return [globals()[name](*arguments) for name, arguments in calls]


def fully_sharded(config):
    """What this rank holds of a model whose layers and root are sharded, after one step of
    AdamW.
    """
    model = in_units(build(config), distributed.get_world_size())
    optimizer = torch.optim.AdamW(model.parameters())
    ids = torch.tensor([[1, 2, 3]])
    model(ids, labels=ids)["loss"].backward()
    gradients = allocated(parameter.grad for parameter in model.parameters())
    optimizer.step()
    states = [local(tensor).nbytes for state in optimizer.state.values() for tensor in state.values()]
    return {"weights": allocated(model.parameters()), "gradients": gradients, "optimizer": sum(states)}


def in_units(model, ranks):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (ranks,))
    for layer in model.model.layers:
        fully_shard(layer, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def most_while_sharded(configs, ranks, frozen):
    """The most bytes that a forward and a backward pass make on one of so many ranks, of which only
    this one runs.
    """
    from torch.testing._internal.distributed.fake_pg import FakeStore

    torch.set_num_threads(1)  # attention on a CPU takes a buffer for each
    distributed.destroy_process_group()
    distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=ranks)
    ids, found = torch.tensor([[1]]), []
    for word, config in ((word, config) for word in frozen for config in configs):
        model = in_units(freeze(build(config), word), ranks)
        model(ids, labels=ids)["loss"].backward()  # the first pass makes what all later ones find
        model.zero_grad()
        gc.collect()
        found.append(most_allocated(lambda model=model: model(ids, labels=ids)["loss"].backward()))
    return found


def freeze(model, word):
    """A model whose parameters with a word in their names are not trained."""
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(not word or word not in name)
    return model


NEVER_LET_GO = []  # DistributedDataParallel, let go of while gloo's threads run, may wait for them for ever


def replicated(config):
    """Bytes of the gradients of DistributedDataParallel, and of the buckets in which it sends
    them.
    """
    model, buckets = build(config), {}
    replica = nn.parallel.DistributedDataParallel(model)
    NEVER_LET_GO.append(replica)

    def noting(_, bucket):
        buckets[bucket.index()] = bucket.buffer()
        done = torch.futures.Future()
        done.set_result(bucket.buffer())
        return done

    replica.register_comm_hook(None, noting)
    ids = torch.tensor([[1, 2, 3]])
    for _ in range(2):  # after the first pass buckets are made anew, in the order in which gradients came
        buckets.clear()
        replica(ids, labels=ids)["loss"].backward()
    gradients = allocated(parameter.grad for parameter in model.parameters())
    together = allocated([*buckets.values(), *(parameter.grad for parameter in model.parameters())])
    return {"gradients": gradients, "buckets": together - gradients}


def cut(config, attention):
    """A model cut by transformers' own plan: bytes of its weights, as torch leaves them and tied
    again, and of what is saved.
    """
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    mesh = init_device_mesh("cpu", (distributed.get_world_size(),))
    model = build(config, attention=attention)
    styles = {
        "colwise": ColwiseParallel(),
        "rowwise": RowwiseParallel(),
        "colwise_gather_output": ColwiseParallel(output_layouts=Replicate()),
        "embedding_rowwise": RowwiseParallel(input_layouts=Replicate()),
    }
    plan = {path: styles[style] for path, style in model.tp_plan.items()}
    embedding, head = model.get_input_embeddings(), model.get_output_embeddings()
    [path] = [name for name, module in model.named_modules() if module is embedding]
    plan[path] = styles["embedding_rowwise"]  # for GPT-NeoX too, of which transformers leaves it whole
    parallelize_module(model, mesh, plan)
    apart = allocated(model.parameters())
    if config["tie_word_embeddings"]:
        head.weight = embedding.weight
    return {"apart": apart, "weights": allocated(model.parameters()), "saved": saved_bytes(model, 2, 32)}
