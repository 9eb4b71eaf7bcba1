"""The chain of admit handlers with all that it needs, and what new settings change in it.

Separate from putting it together: a running chain takes new thresholds, sysctls, grace periods,
gates and handlers from the next pod on, and what it knows of its node stays.
"""

from __future__ import annotations

from collections.abc import Mapping

from numalign.admission.admit_chain import AdmitChain
from numalign.config.admission_chain import CHAIN_KEYS
from numalign.config.settings import Settings
from numalign.process.admission_chain import (
    grace_groups_of,
    node_file_of,
    open_chain,
    plan_of,
    pressure_of,
)
from numalign.process.admit_handlers import open_others
from numalign.process.change import Change, InForce
from numalign.process.node_shutdown import check_shutdown, shutdown_watch
from numalign.telemetry.metrics import Metrics
from numalign.v1 import topology_pb2_grpc as tm_grpc


class ChainLife:
    """One chain from start to close. Raises ConfigError for settings that cannot be used."""

    def __init__(
        self, settings: Settings, topology: tm_grpc.TopologyManagerAsyncStub, metrics: Metrics
    ) -> None:
        self._settings = settings
        self._metrics = metrics
        self._others = open_others(settings, metrics)
        self._in_force = InForce(chain_settings(settings))
        self.chain: AdmitChain = open_chain(settings, topology, self._others.steps)
        self._shutdown = shutdown_watch(settings, self.chain)

    async def serving(self) -> None:
        """Begin, where a file has the Node object, or others have handlers in the chain."""
        if self.chain.is_active:
            self.chain.start()
        if self._shutdown is not None:
            self._shutdown.start()

    async def check(self, settings: Settings) -> Change:
        """What `settings` would change. Raises ConfigError."""
        values = chain_settings(settings)
        changed = self._in_force.changed(values)
        if not changed:
            return Change()
        plan_of(settings)
        check_shutdown(settings)
        pressure = pressure_of(settings)
        other_file = settings.admission.node_file != self._settings.admission.node_file
        file = node_file_of(settings) if other_file else None

        async def apply() -> tuple[str, ...]:
            before = self._others
            self._others = open_others(settings, self._metrics)
            await self.chain.change(plan_of(settings, self._others.steps), pressure)
            await before.close()
            if _shutdown_settings(settings) != _shutdown_settings(self._settings):
                await self._end_shutdown_watch()
                self._shutdown = shutdown_watch(settings, self.chain)
            if other_file:
                self.chain.node.change_file(file)
            self._settings = settings
            self._in_force.now(values)
            await self.serving()
            return changed

        return Change(apply=apply)

    async def close(self) -> None:
        """End it."""
        await self._end_shutdown_watch()
        await self.chain.close()
        await self._others.close()

    async def _end_shutdown_watch(self) -> None:
        if self._shutdown is not None:
            await self._shutdown.close()


def _shutdown_settings(settings: Settings) -> tuple[object, ...]:
    return settings.admission.shutdown, grace_groups_of(settings)


def check_chain(settings: Settings) -> None:
    """Look whether a chain could be made from the settings. Raises ConfigError."""
    plan_of(settings)
    pressure_of(settings)
    node_file_of(settings)
    check_shutdown(settings)


def chain_settings(settings: Settings) -> Mapping[str, object]:
    """The settings that the chain is made from, by path."""
    return {
        "numalign.admission": settings.admission,
        "numalign.hostRoot": settings.host_root,
        "featureGates": settings.gates,
        "cpuManagerPolicy": settings.cpu,
        "memoryManagerPolicy": settings.memory,
        **{key: settings.kubelet.get(key) for key in CHAIN_KEYS},
    }
