"""Turn `package.module:factory` into a ledger by building the module of the user's code.

The module is imported from the current directory first, as uvicorn does. This is the only source
that runs code: the user's own, named by the user.
"""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tallystick.core.ledger import Ledger
from tallystick.core.syntax import parsed
from tallystick.errors import BadInput, nearest, quoted
from tallystick.extras import missing_line, needed, needing
from tallystick.unforeseen import described

if TYPE_CHECKING:
    from torch import nn

ON_META = "built on the meta device, without memory"


def ledger_from_factory(name: str, arguments: Mapping[str, Any], *, real: bool = False) -> Ledger:
    """Import `package.module:factory`, call it with the ``--set`` arguments and count its module.

    A dictionary is read as a config. A factory is called on the meta device first, where a model
    takes no memory. It is called again in real memory if that fails, or when values are compared.

    Args:
        name: ``"package.module:factory"``.
        arguments: keyword arguments of the call; config keys if the target is a dictionary.
        real: build it in real memory at once.

    Raises:
        BadInput: if the import or the call fails, or the result is not an `nn.Module`.
    """
    from tallystick.sources.factory.on_meta import built_on_meta
    from tallystick.sources.torch_module.module import ledger_from_module
    from tallystick.sources.torch_module.values import LaterValues

    target = find(name)
    if isinstance(target, Mapping):  # GPT_CONFIG_124M, as books define it
        from tallystick.sources.config_ledger import ledger_of_config

        return ledger_of_config(target, arguments, source=name)
    needed("torch", f"{name}, a live module,")
    why = ""
    if not real and _is_called(target):
        try:
            module = built_on_meta(lambda: build(name, target, arguments))
            ledger = ledger_from_module(module, source=name, keep=True)
        except BadInput as refused:
            why = str(refused)
        else:
            if values := ledger.evidence.values:
                later = LaterValues(values, lambda: build(name, target, arguments))
                ledger = replace(ledger, evidence=replace(ledger.evidence, values=later))
            return ledger.with_notes(ON_META)
    ledger = ledger_from_module(_built_again(name, target, arguments, why), source=name, keep=True)
    if why:
        return ledger.with_notes(f"cannot be built on the meta device ({why}): built in real memory")
    return ledger


def _is_called(target: Any) -> bool:
    from torch import nn

    return callable(target) and not isinstance(target, nn.Module)


def _built_again(name: str, target: Any, arguments: Mapping[str, Any], why: str) -> nn.Module:
    """Build the module in memory.

    Reimport the factory if leftovers of the meta call are in the way.
    """
    try:
        return build(name, target, arguments)
    except BadInput as refused:
        module_name = name.partition(":")[0]
        if not why or "meta" not in str(refused) or module_name not in sys.modules:
            raise
        del sys.modules[module_name]
        return build(name, find(name), arguments)


def find(name: str) -> Any:
    """Import and return the target of `package.module:factory`.

    Args:
        name: ``"package.module:factory"``.

    Raises:
        BadInput: if the module cannot be imported, or has no such attribute.
    """
    module_name, _, path = name.partition(":")
    with redirect_stdout(sys.stderr):  # the user's prints must not mix with the answer
        return _find(module_name, path)


def arguments_in_text(name: str) -> list[str]:
    """Return a factory's argument names by parsing its file, without an import; [] if unknown."""
    module_name, _, path = name.partition(":")
    file = os.path.join(os.getcwd(), *module_name.split(".")) + ".py"
    try:
        with open(file, encoding="utf-8") as opened:
            body = parsed(opened.read()).body
    except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
        return []
    found = [node for node in body if getattr(node, "name", None) == path]
    if len(found) != 1 or not isinstance(found[0], ast.FunctionDef) or found[0].decorator_list or found[0].args.kwarg:
        return []
    given = found[0].args
    return [argument.arg for argument in (*given.posonlyargs, *given.args, *given.kwonlyargs)]


def build(name: str, target: Any, arguments: Mapping[str, Any]) -> nn.Module:
    """Return the module that a factory returns for these arguments, or `target` if it is a module.

    Args:
        name: the factory's name, for messages.
        target: the factory, or an `nn.Module`.
        arguments: keyword arguments of the call.

    Raises:
        BadInput: if the call fails, or does not return an `nn.Module`.
    """
    with redirect_stdout(sys.stderr):
        return _build(name, target, arguments)


def _build(name: str, target: Any, arguments: Mapping[str, Any]) -> nn.Module:
    with needing(f"{name}, a live module,"):
        from torch import nn

    if not isinstance(target, nn.Module):
        if not callable(target):
            raise BadInput(
                f"{name} is a {type(target).__name__}, expected an nn.Module or a function that returns one",
                code="user-code",
            )
        try:
            target = target(**arguments)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # also SystemExit, GeneratorExit and the user's own
            raise BadInput(f"{name} raised {described(error)}", code="user-code") from error
    elif arguments:
        raise BadInput(
            f"{name} is already a module, so {', '.join(arguments)} cannot be passed to it",
            code="unknown-key",
        )
    if not isinstance(target, nn.Module):
        raise BadInput(f"{name} returned a {type(target).__name__}, expected an nn.Module", code="user-code")
    return target


def _find(module_name: str, path: str) -> Any:
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found: Any = import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name and (module_name == error.name or module_name.startswith(error.name + ".")):
            raise BadInput(
                f"there is no module {quoted(module_name)} in {os.getcwd()} or installed",
                code="not-found",
            ) from None
        line = missing_line(error, f"importing {module_name}")
        raise BadInput(
            line or f"importing {module_name} raised {described(error)}",
            code="missing-package" if line else "user-code",
        ) from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a script without a main guard exits when it is imported
        raise BadInput(f"importing {module_name} raised {described(error)}", code="user-code") from error
    for part in path.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            known = [name for name in dir(found) if not name.startswith("_")]
            raise BadInput(f"{module_name} has no {quoted(path)}{nearest(part, known)}", code="unknown-name") from None
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # a module's own __getattr__, a property
            raise BadInput(f"{module_name}:{path} raised {described(error)}", code="user-code") from error
    return found
