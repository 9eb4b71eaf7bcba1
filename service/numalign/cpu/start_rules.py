"""What both ways to start from a stored state are told.

Separate so that the check that refuses and the one that re-bases do not know each other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from numalign.cpu.state import CpuState
from numalign.model.cpu_set import CpuSet
from numalign.provider.engine import Started

STAGE = "cpu_manager_start"


@dataclass(frozen=True, slots=True, kw_only=True)
class StartRules:
    """The policy now configured and the CPUs it may put into a state.

    `policy` is `none` or `static`; `managed` is what the shared set and the assignments add
    up to (E of CPU-32), empty for `none`; `strict` is strict-cpu-reservation; `pod_sets`
    says whether pods may hold sets as a whole. `state_file` is named in messages.
    """

    policy: str
    managed: CpuSet
    reserved: CpuSet
    strict: bool
    pod_sets: bool
    state_file: str


StartCheck: TypeAlias = Callable[[bytes | None, StartRules], Started[CpuState]]
"""From what was stored (None: nothing) to the state to start with."""
