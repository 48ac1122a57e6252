"""What an operation is, where it works, and how it gets on the list."""

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
    """A model has nothing for an operation to be done to; the message says what it lacks."""


class Workspace(NamedTuple):
    """What an operation works with beside the model: a folder for files, what to undo later, the model's facts."""

    folder: Path
    cleanup: ExitStack  # closed when the model has been looked at
    subject: Subject

    def fresh(self) -> Any:
        """The model again, as it was at first."""
        return self.subject.build()

    def embedding(self, model: Any) -> Any:
        """The module that holds the token embedding."""
        return model.get_submodule(self.subject.embedding_module)

    def head(self, model: Any) -> Any:
        """The module that holds the head's matrix."""
        return model.get_submodule(self.subject.head_module)

    def replace_head(self, model: Any, head: nn.Module) -> Any:
        """The model with another head."""
        model.set_submodule(self.subject.head_module, head)
        return model

    def other_embedding(self, model: Any) -> nn.Embedding:
        """An embedding of the same shape, its values others."""
        from torch import nn

        rows, width = self.embedding(model).weight.shape
        return nn.Embedding(rows, width, _weight=random(rows, width))

    def other_head(self, model: Any) -> nn.Linear:
        """A head of the same shape, its values others."""
        from torch import nn

        rows, width = self.head(model).weight.shape
        head = nn.Linear(width, rows, bias=False)
        head.weight.data = random(rows, width)
        return head

    def linears(self, model: Any) -> list[str]:
        """The names of all linear modules but the head."""
        from torch import nn
        from transformers.pytorch_utils import Conv1D  # GPT-2's linear layer

        found = [name for name, module in model.named_modules() if isinstance(module, nn.Linear | Conv1D)]
        return [name for name in found if name != self.subject.head_module]


def random(*shape: int) -> torch.Tensor:
    """New values, the same each time."""
    import torch

    return torch.randn(*shape, generator=torch.Generator().manual_seed(1))


Run = Callable[[Any, Workspace], Any]


class Operation(NamedTuple):
    """Something that people do to a model."""

    name: str
    library: str  # as it is imported
    run: Run
    instead: str = ""  # the name of one that keeps the tie, where `retie` cannot mend what this one did
    on: str = "gpt2"  # the model that it is done to, where the user names none
    processes: int = 1

    @property
    def what(self) -> str:
        """What it does, in one line."""
        return (self.run.__doc__ or "").strip()


OPERATIONS: list[Operation] = []


def operation(
    name: str, library: str = "torch", *, instead: str = "", on: str = "gpt2", processes: int = 1
) -> Callable[[Run], Run]:
    """Put a function on the list; its docstring says in one line what it does."""

    def put(run: Run) -> Run:
        OPERATIONS.append(Operation(name, library, run, instead, on, processes))
        return run

    return put
