"""Operations: data parallel, sharded (FSDP2) and tensor parallel."""

from __future__ import annotations

from typing import Any

from tallystick.live.operations.registry import NotApplicable, Workspace, operation

PROCESSES = 2
TOGETHER = "fully_shard (FSDP2): blocks, root"


@operation("DistributedDataParallel", processes=PROCESSES)
def data_parallel(model: Any, workspace: Workspace) -> Any:
    """Wrap for data parallel training."""
    from torch.nn.parallel import DistributedDataParallel

    return DistributedDataParallel(model)


@operation("fully_shard (FSDP2): root", processes=PROCESSES)
def sharded_root(model: Any, workspace: Workspace) -> Any:
    """Shard the whole model as one unit."""
    from torch.distributed.fsdp import fully_shard

    return fully_shard(model, mesh=_mesh())


@operation(TOGETHER, processes=PROCESSES)
def sharded(model: Any, workspace: Workspace) -> Any:
    """Shard the blocks one by one, and embedding and head together in the root's unit."""
    from torch.distributed.fsdp import fully_shard

    mesh = _mesh()
    _shard_blocks(model, mesh)
    return fully_shard(model, mesh=mesh)


@operation("fully_shard (FSDP2): blocks, [embedding, head], root", processes=PROCESSES)
def sharded_as_pair(model: Any, workspace: Workspace) -> Any:
    """Shard the blocks one by one, and embedding and head in a unit of the two."""
    from torch.distributed.fsdp import fully_shard

    mesh = _mesh()
    _shard_blocks(model, mesh)
    fully_shard([workspace.embedding(model), workspace.head(model)], mesh=mesh)
    return fully_shard(model, mesh=mesh)


@operation("fully_shard (FSDP2): blocks, embedding, head, root", instead=TOGETHER, processes=PROCESSES)
def sharded_apart(model: Any, workspace: Workspace) -> Any:
    """Shard the blocks one by one, and embedding and head in a unit each."""
    from torch.distributed.fsdp import fully_shard

    mesh = _mesh()
    _shard_blocks(model, mesh)
    for part in (workspace.embedding(model), workspace.head(model)):
        fully_shard(part, mesh=mesh)
    return fully_shard(model, mesh=mesh)


@operation("parallelize_module: embedding by rows, head by columns", processes=PROCESSES)
def tensor_parallel(model: Any, workspace: Workspace) -> Any:
    """Give each process half of the vocabulary, of embedding and head."""
    from torch.distributed.tensor import Replicate
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    plan = {
        workspace.subject.embedding_module: RowwiseParallel(input_layouts=Replicate()),
        workspace.subject.head_module: ColwiseParallel(output_layouts=Replicate()),
    }
    return parallelize_module(model, _mesh(), plan)


def _shard_blocks(model: Any, mesh: Any) -> None:
    from torch import nn
    from torch.distributed.fsdp import fully_shard

    stacks = [module for module in model.modules() if isinstance(module, nn.ModuleList)]
    if not stacks:
        raise NotApplicable(f"{type(model).__name__} has no nn.ModuleList of blocks")
    for block in max(stacks, key=len):
        fully_shard(block, mesh=mesh)


def _mesh() -> Any:
    """Return a mesh of all processes in the current group."""
    from torch import distributed
    from torch.distributed.device_mesh import init_device_mesh

    return init_device_mesh("cpu", (distributed.get_world_size(),))
