"""Leave parameters on the meta device unfilled: random values of no memory take CPU time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


def unfilled() -> Any:
    """Return a torch function mode in which `nn.init` draws no values for meta tensors.

    A call that torch would refuse, or warn of, still reaches torch.
    """
    from torch.nn import init
    from torch.overrides import TorchFunctionMode

    checks: dict[Any, Callable[[Mapping[str, Any]], bool]] = {
        init.kaiming_uniform_: lambda given: (
            (given["mode"], given["nonlinearity"]) == ("fan_in", "leaky_relu") and given["tensor"].dim() > 1
        ),
        init.normal_: lambda given: bool(given["std"] >= 0),
        init.uniform_: lambda given: bool(given["a"] <= given["b"]),
    }

    class Unfilled(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            check = checks.get(func)
            if check and _is_large_on_meta(kwargs["tensor"]) and check(kwargs):
                return kwargs["tensor"]
            return func(*args, **(kwargs or {}))

    return Unfilled()


def _is_large_on_meta(tensor: Any) -> bool:
    return bool(tensor.is_meta and tensor.is_floating_point() and tensor.numel())
