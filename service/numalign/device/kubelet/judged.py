"""What a kubelet tells of devices, judged before it counts: NUMA nodes that cannot be.

Separate from the client, which reads, and from the observation, which believes what it is
given.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from typing import TypeAlias

from numalign.device.inventory import Device
from numalign.device.kubelet.ports import KubeletDevices
from numalign.device.kubelet.values import PodKey, ToldDevice, ToldPod
from numalign.device.listing import Listed, Oddity

OnOdd: TypeAlias = Callable[[str, Iterable[Oddity]], None]
"""Hears of a resource's oddities that were not there before."""

_Found: TypeAlias = frozenset[tuple[str, Oddity]]


class JudgedKubelet:
    """A `KubeletDevices` around another one.

    `nodes` are the NUMA nodes of the machine; `listed` says what counts of a device on them.
    """

    def __init__(
        self, kubelet: KubeletDevices, listed: Listed, nodes: Collection[int], on_odd: OnOdd
    ) -> None:
        self._kubelet = kubelet
        self._listed = listed
        self._nodes = frozenset(nodes)
        self._on_odd = on_odd
        self._before: dict[str, _Found] = {}

    async def allocatable(self, seconds: float) -> tuple[ToldDevice, ...]:
        """Healthy devices, held or not."""
        devices, found = self._judged(await self._kubelet.allocatable(seconds))
        self._tell("allocatable", found)
        return devices

    async def pods(self, seconds: float) -> tuple[ToldPod, ...]:
        """Every active pod."""
        judged = [self._judged_pod(pod) for pod in await self._kubelet.pods(seconds)]
        self._tell("pods", frozenset().union(*(found for _, found in judged)))
        return tuple(pod for pod, _ in judged)

    async def pod(self, key: PodKey, seconds: float) -> ToldPod | None:
        """One pod; None where there is none, or the kubelet cannot be asked for one."""
        told = await self._kubelet.pod(key, seconds)
        if told is None:
            return None
        pod, found = self._judged_pod(told)
        self._tell("pod", found)
        return pod

    def _judged_pod(self, pod: ToldPod) -> tuple[ToldPod, _Found]:
        judged = {name: self._judged(devices) for name, devices in pod.containers.items()}
        containers = {name: devices for name, (devices, _) in judged.items()}
        found: _Found = frozenset().union(*(odd for _, odd in judged.values()))
        return replace(pod, containers=containers), found

    def _judged(self, told: Iterable[ToldDevice]) -> tuple[tuple[ToldDevice, ...], _Found]:
        """One by one: a device on several nodes is told several times, which is not odd."""
        judged: list[ToldDevice] = []
        found: set[tuple[str, Oddity]] = set()
        for one in told:
            sent = Device(id=one.id, numa_nodes=one.numa_nodes)
            listing = self._listed((sent,), self._nodes)
            judged += [replace(one, numa_nodes=device.numa_nodes) for device in listing.devices]
            found.update((one.resource, oddity) for oddity in listing.oddities)
        return tuple(judged), frozenset(found)

    def _tell(self, source: str, found: _Found) -> None:
        fresh = found.difference(*self._before.values())
        self._before[source] = found
        for resource in sorted({resource for resource, _ in fresh}):
            self._on_odd(resource, sorted(odd for name, odd in fresh if name == resource))
