"""What a kubelet tells of devices on its pod resources socket, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from numalign.model.ids import DeviceId
from numalign.model.pod import Pod


class PodKey(NamedTuple):
    """How a kubelet names a pod there: it tells no UID."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class ToldDevice:
    """One device as told once; one on several NUMA nodes may be told several times.

    `numa_nodes` None: without topology.
    """

    resource: str
    id: DeviceId
    numa_nodes: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class ToldPod:
    """A pod and the devices of its sidecars and app containers, by container name."""

    key: PodKey
    containers: Mapping[str, tuple[ToldDevice, ...]]


def key_of(pod: Pod) -> PodKey:
    """The name under which the kubelet tells of `pod`."""
    return PodKey(pod.namespace or "default", pod.name)
