"""Keeps what is known of a kubelet's devices up to date: by the clock, and before a decision.

Separate from the engine, which decides over what is known, and from the client, which only
asks. One question is asked at a time, so that an old answer never follows a newer one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from numalign.device.kubelet.engine import KubeletDeviceEngine
from numalign.device.kubelet.observation import (
    Observation,
    refreshed,
    with_pod,
    with_pods,
    without_pod,
)
from numalign.device.kubelet.ports import KubeletDevices, KubeletSilent
from numalign.device.kubelet.values import key_of
from numalign.model.ids import AdmissionId
from numalign.model.pod import Pod

LOOK_SECONDS = 0.5
"""How long a decision waits for the kubelet to tell of its pod (DEV-23)."""

FIRST_PAUSE = 0.02
POLL_SECONDS = 5.0
LONGEST_BACK_OFF = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PollTimes:
    """Seconds: between two polls, and after the first one that failed (then doubled)."""

    interval: float = 10.0
    back_off: float = 1.0


Changed = Callable[[], Awaitable[None]]
"""Carries what is known now into the provider's books."""

Heard = Callable[[str | None], None]
"""Hears whether the kubelet answered: why not, or None when it did again."""


class KubeletLook:
    """Looks at one kubelet for one engine."""

    def __init__(
        self,
        kubelet: KubeletDevices,
        engine: KubeletDeviceEngine,
        changed: Changed,
        heard: Heard,
        times: PollTimes,
    ) -> None:
        self._kubelet = kubelet
        self._engine = engine
        self._changed = changed
        self._heard = heard
        self._times = times
        self._asking = asyncio.Lock()
        self._polling: asyncio.Task[None] | None = None
        self._silent = False
        self._known_for: AdmissionId | None = None
        self._carried: Observation | None = None

    def start(self) -> None:
        """Begin to poll."""
        if self._polling is None:
            self._polling = asyncio.get_running_loop().create_task(self._poll())

    async def close(self) -> None:
        """Stop polling."""
        if self._polling is not None:
            self._polling.cancel()
            await asyncio.gather(self._polling, return_exceptions=True)
            self._polling = None

    async def look_at(self, admission: AdmissionId, pod: Pod) -> None:
        """Learn what the kubelet gave the pod, within `LOOK_SECONDS`, once in an admission.

        Asks nothing about a pod without devices. What was told before is not relied on: a pod
        of the same name may have come in its place. What is not known in time is unknown, and
        the engine says so when it is asked.
        """
        if not self._engine.asks(pod) or admission == self._known_for:
            return
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                pause = FIRST_PAUSE
                while not await self._learn(pod):
                    await asyncio.sleep(pause)
                    pause *= 2
        except TimeoutError:
            self._engine.observe(without_pod(self._engine.observation, key_of(pod)))
            return
        self._known_for = admission

    async def refresh(self) -> None:
        """Ask for everything. Raises KubeletSilent, and what is known stays as it is."""
        async with self._asking:
            allocatable = await self._kubelet.allocatable(POLL_SECONDS)
            pods = await self._kubelet.pods(POLL_SECONDS)
            told = refreshed(self._engine.observation, allocatable, pods)
            self._engine.observe(told)
            if self._carried is None or not _same(self._carried, told):
                await self._changed()
                self._carried = told

    async def _learn(self, pod: Pod) -> bool:
        """Ask once: for the pod, else for all; whether everything about it is known now."""
        try:
            if self._engine.is_unheard_of(pod):
                await self.refresh()
            async with self._asking:
                told = await self._kubelet.pod(key_of(pod), LOOK_SECONDS)
                if told is not None:
                    self._engine.observe(with_pod(self._engine.observation, told))
                if told is None or self._engine.is_awaited(pod):
                    pods = await self._kubelet.pods(LOOK_SECONDS)
                    self._engine.observe(with_pods(self._engine.observation, pods))
        except KubeletSilent as silent:
            self._note(str(silent))
            return False
        return not self._engine.is_awaited(pod)

    async def _poll(self) -> None:
        back_off = self._times.back_off
        while True:
            try:
                await self.refresh()
            except KubeletSilent as silent:
                self._note(str(silent))
                await asyncio.sleep(back_off)
                back_off = min(2 * back_off, LONGEST_BACK_OFF)
                continue
            self._note(None)
            back_off = self._times.back_off
            await asyncio.sleep(self._times.interval)

    def _note(self, why: str | None) -> None:
        if (why is not None) != self._silent:
            self._silent = why is not None
            self._heard(why)


def _same(before: Observation, after: Observation) -> bool:
    return (
        set(before.allocatable) == set(after.allocatable)
        and before.pods == after.pods
        and before.resources() == after.resources()
    )
