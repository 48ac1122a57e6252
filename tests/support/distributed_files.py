"""Distributed checkpoints as the tests write them."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import torch
from torch.distributed.checkpoint.filesystem import _StorageInfo
from torch.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    TensorProperties,
    TensorStorageMetadata,
)


def sharded(shape: tuple[int, ...], *shards: tuple[tuple[int, ...], tuple[int, ...]]) -> TensorStorageMetadata:
    chunks = [ChunkStorageMetadata(torch.Size(start), torch.Size(sizes)) for start, sizes in shards]
    return TensorStorageMetadata(TensorProperties(torch.float16), torch.Size(shape), chunks)


ROWS = sharded((4, 3), ((0, 0), (2, 3)), ((2, 0), (2, 3)))


PLACES = {
    MetadataIndex("w", (0, 0)): _StorageInfo("__0_0.distcp", 0, 100),
    MetadataIndex("w", (2, 0)): _StorageInfo("__1_0.distcp", 50, 50),
}


def write(folder: Path, tensors: dict[str, Any], *, places: Any = None, paths: Any = None, protocol: int = 4) -> Path:
    for name in ("__0_0.distcp", "__1_0.distcp"):
        (folder / name).write_bytes(bytes(100))
    told = Metadata(tensors, paths, PLACES if places is None else places)
    (folder / ".metadata").write_bytes(pickle.dumps(told, protocol))
    return folder
