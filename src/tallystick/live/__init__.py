"""Check, watch and restore weight tying in live PyTorch modules. Imports no torch itself."""

from tallystick.live.check import NotTied, assert_tied
from tallystick.live.optimizer import Finding, check_optimizer
from tallystick.live.retie import Retied, retie
from tallystick.live.watch import TieLost, Watch, assert_kept, watch

__all__ = [
    "Finding",
    "NotTied",
    "Retied",
    "TieLost",
    "Watch",
    "assert_kept",
    "assert_tied",
    "check_optimizer",
    "retie",
    "watch",
]
