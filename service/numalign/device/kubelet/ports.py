"""The door to the kubelet: what observer mode asks of it."""

from __future__ import annotations

from typing import Protocol

from numalign.device.kubelet.values import PodKey, ToldDevice, ToldPod


class KubeletSilent(Exception):
    """The kubelet did not answer, or not in time; the message says how."""


class KubeletDevices(Protocol):
    """Pod resources of one kubelet. Every call raises KubeletSilent, after `seconds` at most."""

    async def allocatable(self, seconds: float) -> tuple[ToldDevice, ...]:
        """Healthy devices, held or not."""

    async def pods(self, seconds: float) -> tuple[ToldPod, ...]:
        """Every active pod."""

    async def pod(self, key: PodKey, seconds: float) -> ToldPod | None:
        """One pod; None where there is none, or the kubelet cannot be asked for one."""
