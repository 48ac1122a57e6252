"""Operations of real libraries on tied models, one function each, for `survive`.

An operation gets a tied model and a workspace, and returns the model that its user goes on with.
"""

from tallystick.live.operations import (  # noqa: I001 - in the order of the page
    copying as copying,
    loading as loading,
    moving as moving,
    calling as calling,
    surgery as surgery,
    transformers as transformers,
    accelerate as accelerate,
    peft as peft,
    torchao as torchao,
    distributed as distributed,
)
from tallystick.live.operations.registry import OPERATIONS as OPERATIONS
from tallystick.live.operations.registry import Workspace as Workspace
from tallystick.live.operations.registry import NotApplicable as NotApplicable
from tallystick.live.operations.registry import Operation as Operation
