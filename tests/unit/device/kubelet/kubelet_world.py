"""A kubelet that tells what a test says, and an engine that follows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.unit.device.device_world import GPU, SAFE, Plugins, machine

from numalign.device.kubelet.engine import KubeletDeviceEngine
from numalign.device.kubelet.observation import Observation, refreshed
from numalign.device.kubelet.ports import KubeletSilent
from numalign.device.kubelet.values import PodKey, ToldDevice, ToldPod
from numalign.model.feature_gates import FeatureGates
from numalign.model.ids import DeviceId


def told(id_: str, *nodes: int, resource: str = GPU) -> ToldDevice:
    """A device on these nodes."""
    return ToldDevice(resource, DeviceId(id_), nodes)


def bare(id_: str, resource: str = GPU) -> ToldDevice:
    """A device without topology."""
    return ToldDevice(resource, DeviceId(id_), None)


def told_pod(name: str, containers: Mapping[str, tuple[ToldDevice, ...]]) -> ToldPod:
    """A pod of the namespace `default`."""
    return ToldPod(PodKey("default", name), containers)


FOUR = (told("a", 0), told("b", 0), told("c", 1), told("d", 1))
"""Four GPUs, two on each of two nodes."""


def following(*pods: ToldPod, devices: tuple[ToldDevice, ...] = FOUR) -> KubeletDeviceEngine:
    """An engine that was told of these devices and pods."""
    engine = silent()
    engine.observe(refreshed(Observation(), devices, pods))
    return engine


def silent(gates: FeatureGates | None = None) -> KubeletDeviceEngine:
    """An engine that was told nothing yet, on two NUMA nodes."""
    return KubeletDeviceEngine(machine(0, 1), gates or FeatureGates(), Plugins(), SAFE, 3.0)


@dataclass
class Kubelet:
    """The port, answering from its fields and noting the calls. `failing` names silent calls."""

    devices: tuple[ToldDevice, ...] = FOUR
    told: dict[PodKey, ToldPod] = field(default_factory=dict)
    serves_get: bool = True
    failing: set[str] = field(default_factory=set)
    calls: list[str] = field(default_factory=list)

    def give(self, *pods: ToldPod) -> None:
        """These pods are there now."""
        self.told.update({pod.key: pod for pod in pods})

    async def allocatable(self, seconds: float) -> tuple[ToldDevice, ...]:
        self._called("allocatable", seconds)
        return self.devices

    async def pods(self, seconds: float) -> tuple[ToldPod, ...]:
        self._called("pods", seconds)
        return tuple(self.told.values())

    async def pod(self, key: PodKey, seconds: float) -> ToldPod | None:
        self._called("pod", seconds)
        return self.told.get(key) if self.serves_get else None

    def _called(self, call: str, seconds: float) -> None:
        assert seconds > 0
        self.calls.append(call)
        if call in self.failing:
            raise KubeletSilent(f"UNAVAILABLE: no {call}")
