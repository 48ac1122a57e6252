"""Operations: compile and export a model, and call it with other parameters."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tallystick.live.operations.registry import Workspace, operation, random
from tallystick.live.probe import logits_of

if TYPE_CHECKING:
    import torch

_Values = dict[str, Any]
_Call = Callable[[_Values, Any], Any]  # values and token ids -> the model's output


@operation("torch.compile(model)")
def compiled(model: Any, workspace: Workspace) -> Any:
    """Compile the model; traced with its gradients, but no code is generated."""
    import torch

    return torch.compile(model, backend="aot_eager")


@operation("torch.export.export(model).module()")
def exported(model: Any, workspace: Workspace) -> Any:
    """Export the model, and go on with the exported program as a module."""
    import torch

    ids = torch.tensor([[1, 2, 3]])
    return torch.export.export(model, (ids,)).module()


@operation("torch.func.functional_call, one value for both")
def called_with_one(model: Any, workspace: Workspace) -> Any:
    """Call the model with another tensor in the embedding's place; the head is to take it too."""
    return _as_module(model, _values(model, workspace.subject.embedding), lambda call, values, ids: call(values, ids))


@operation("torch.func.functional_call, two values", instead="torch.func.functional_call, one value for both")
def called_with_two(model: Any, workspace: Workspace) -> Any:
    """Call the model with one tensor for the embedding and another for the head."""
    values = _values(model, workspace.subject.embedding, workspace.subject.head)
    return _as_module(model, values, lambda call, values, ids: call(values, ids))


@operation("torch.func.stack_module_state, vmap")
def stacked(model: Any, workspace: Workspace) -> Any:
    """Stack the parameters of two models, and call both at once through one of them."""
    return _ensemble(model, model, workspace)


@operation(
    "torch.func.stack_module_state, vmap, through the meta device", instead="torch.func.stack_module_state, vmap"
)
def stacked_through_meta(model: Any, workspace: Workspace) -> Any:
    """Stack the parameters of two models, and call both at once through a copy on the meta device."""
    return _ensemble(model, copy.deepcopy(model).to("meta"), workspace)


def _ensemble(model: Any, base: Any, workspace: Workspace) -> Any:
    import torch
    from torch import nn

    stacks, buffers = torch.func.stack_module_state([model, workspace.fresh()])
    parameters = {name: nn.Parameter(stack) for name, stack in stacks.items()}

    def both(call: _Call, values: _Values, ids: torch.Tensor) -> torch.Tensor:
        one = torch.func.vmap(lambda parameters, buffers: logits_of(call({**parameters, **buffers}, ids)))
        found: torch.Tensor = one(values, buffers)
        return found

    return _as_module(base, parameters, both)


def _values(model: Any, *names: str) -> _Values:
    from torch import nn

    return {name: nn.Parameter(random(*model.get_parameter(name).shape)) for name in names}


def _as_module(model: Any, values: _Values, run: Callable[[_Call, _Values, torch.Tensor], Any]) -> Any:
    """Wrap functional calls of a model in a module with the parameters used in the last call."""
    import torch
    from torch import nn

    taken: dict[str, str] = {}  # parameter name -> key of the value used for it

    def call(given: _Values, ids: torch.Tensor) -> Any:
        keys = {id(value): key for key, value in given.items()}

        def look(inside: nn.Module, _: object) -> None:
            for name, parameter in inside.named_parameters(remove_duplicate=False):
                if id(parameter) in keys:
                    taken[name] = keys[id(parameter)]

        with model.register_forward_pre_hook(look):
            return torch.func.functional_call(model, given, (ids,))

    class Calls(nn.Module):  # type: ignore[misc]
        def forward(self, ids: torch.Tensor) -> Any:
            return run(call, values, ids)

    calls = Calls()
    calls(torch.tensor([[1]]))
    shell = copy.deepcopy(model)
    for name, key in taken.items():
        owner, _, last = name.rpartition(".")
        delattr(shell.get_submodule(owner), last)
        setattr(shell.get_submodule(owner), last, values[key])
    for name, part in shell.named_children():
        setattr(calls, name, part)
    return calls
