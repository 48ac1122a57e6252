"""The list of operations, and what each works with."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tallystick.live.subjects import Subject

if TYPE_CHECKING:
    import torch
    from torch import nn


class NotApplicable(Exception):
    """The model lacks what the operation acts on; the message says what."""


class Workspace(NamedTuple):
    """What an operation works with besides the model."""

    folder: Path  # for files
    cleanup: ExitStack  # closed after the model was inspected
    subject: Subject

    def fresh(self) -> Any:
        """Return a new copy of the original model."""
        return self.subject.build()

    def embedding(self, model: Any) -> Any:
        """Return the module that holds the token embedding."""
        return model.get_submodule(self.subject.embedding_module)

    def head(self, model: Any) -> Any:
        """Return the module that holds the LM head's matrix."""
        return model.get_submodule(self.subject.head_module)

    def replace_head(self, model: Any, head: nn.Module) -> Any:
        """Replace the model's head, and return the model."""
        model.set_submodule(self.subject.head_module, head)
        return model

    def other_embedding(self, model: Any) -> nn.Embedding:
        """Return an embedding of the same shape with other values."""
        from torch import nn

        rows, width = self.embedding(model).weight.shape
        return nn.Embedding(rows, width, _weight=random(rows, width))

    def other_head(self, model: Any) -> nn.Linear:
        """Return a head of the same shape with other values."""
        from torch import nn

        rows, width = self.head(model).weight.shape
        head = nn.Linear(width, rows, bias=False)
        head.weight.data = random(rows, width)
        return head

    def linears(self, model: Any) -> list[str]:
        """Return the names of all linear modules except the head."""
        from torch import nn
        from transformers.pytorch_utils import Conv1D  # GPT-2's linear layer

        found = [name for name, module in model.named_modules() if isinstance(module, nn.Linear | Conv1D)]
        return [name for name in found if name != self.subject.head_module]


def random(*shape: int) -> torch.Tensor:
    """Return normal random values, the same in every call."""
    import torch

    return torch.randn(*shape, generator=torch.Generator().manual_seed(1))


Run = Callable[[Any, Workspace], Any]


class Operation(NamedTuple):
    """Something that users do to a model."""

    name: str
    library: str  # import name of the library
    run: Run
    instead: str = ""  # an operation that keeps the tie, if `retie` cannot repair this one
    on: str = "gpt2"  # default model
    processes: int = 1

    @property
    def what(self) -> str:
        """The operation in one line, shown to users."""
        return (self.run.__doc__ or "").strip()


OPERATIONS: list[Operation] = []


def operation(
    name: str, library: str = "torch", *, instead: str = "", on: str = "gpt2", processes: int = 1
) -> Callable[[Run], Run]:
    """Register a function; its docstring is the one-line description shown to users."""

    def put(run: Run) -> Run:
        OPERATIONS.append(Operation(name, library, run, instead, on, processes))
        return run

    return put
