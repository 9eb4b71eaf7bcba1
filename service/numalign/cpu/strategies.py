"""The choices between the kubelet's ways and safer ones, made once at start."""

from __future__ import annotations

from dataclasses import dataclass

from numalign.cpu.rebase import rebase
from numalign.cpu.sizes import Sizes, averaged, real
from numalign.cpu.start_check import refuse
from numalign.cpu.start_rules import StartCheck


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuStrategies:
    """How to start from what was stored, and by which sizes to judge uneven machines."""

    start_check: StartCheck
    sizes: Sizes


KUBELET = CpuStrategies(start_check=refuse, sizes=averaged)
"""The kubelet's ways, faults included."""

SAFE = CpuStrategies(start_check=rebase, sizes=real)
"""No start is refused, and no CPU given out that is not free."""
