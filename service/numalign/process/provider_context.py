"""What every built-in provider of a process is built from."""

from __future__ import annotations

from dataclasses import dataclass

from numalign.config.settings import Settings
from numalign.model.machine import Machine
from numalign.process.compatibility import Strategies
from numalign.provider.pod_cache import PodCache
from numalign.telemetry.metrics import Metrics


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderContext:
    """What every provider of a process is built from.

    `durable` says whether a prepared part is written by itself, which it must be unless the
    Topology Manager's record is in the same file.
    """

    settings: Settings
    machine: Machine
    strategies: Strategies
    pods: PodCache
    durable: bool
    metrics: Metrics
