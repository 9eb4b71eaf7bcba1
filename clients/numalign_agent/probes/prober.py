"""Asks the containers that run, each probe in a task of its own."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from numalign.telemetry.logs import get_logger
from numalign_agent.containers.environment import CannotProvide
from numalign_agent.containers.spec import ContainerSpec, containers_of
from numalign_agent.pod import AgentPod
from numalign_agent.probes import asking
from numalign_agent.probes.results import (
    Judged,
    ProbeChange,
    ProbeKey,
    ProbeKind,
    Tally,
    counted,
    judged,
    settings_of,
)
from numalign_agent.runners.port import ContainerPhase, RuntimeContainer
from numalign_agent.status.port import EventType

_log = get_logger("probes")

SayEvent = Callable[[AgentPod, EventType, str, str], None]


class Prober:
    """See workers.operations.Probing. `changed` hears of results that are others than before."""

    def __init__(self, changed: Callable[[ProbeChange], None], event: SayEvent) -> None:
        self._changed = changed
        self._event = event
        self._tasks: dict[str, dict[ProbeKey, asyncio.Task[None]]] = {}
        self._results: dict[ProbeKey, bool | None] = {}

    def follow(self, pod: AgentPod, containers: Sequence[RuntimeContainer]) -> None:
        """Ask these containers, and nobody else of the pod."""
        specs = {spec.name: spec for spec in containers_of(pod)}
        tasks = self._tasks.setdefault(pod.uid, {})
        wanted = {
            ProbeKey(container.id, kind): (spec, probe)
            for container in containers
            if container.phase is ContainerPhase.RUNNING and (spec := specs.get(container.name))
            for kind in ProbeKind
            if (probe := spec.document.get(f"{kind.value}Probe")) is not None
        }
        for key in [key for key in tasks if key not in wanted]:
            tasks.pop(key).cancel()
            self._results.pop(key, None)
        for key, (spec, probe) in wanted.items():
            if key not in tasks:
                asked = self._ask(pod, key, spec, probe)
                tasks[key] = asyncio.get_running_loop().create_task(asked)

    def judged(self, pod: AgentPod, containers: Sequence[RuntimeContainer]) -> Judged:
        """What is known of containers."""
        return judged(pod, containers, self._results)

    def stop(self, pod_uid: str) -> None:
        """Ask nobody of this pod any more."""
        for key, task in self._tasks.pop(pod_uid, {}).items():
            task.cancel()
            self._results.pop(key, None)

    async def close(self) -> None:
        """Ask nobody any more."""
        tasks = [task for of_pod in self._tasks.values() for task in of_pod.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _ask(
        self, pod: AgentPod, key: ProbeKey, spec: ContainerSpec, probe: Mapping[str, Any]
    ) -> None:
        try:
            asking.check(spec, probe)
        except CannotProvide as error:
            # It would never say yes: that has to be seen.
            self._event(pod, EventType.WARNING, "ProbeNotSupported", str(error))
            self._found(pod, key, result=key.kind is not ProbeKind.READINESS)
            return
        settings = settings_of(probe)
        # Probes of many containers that start together are spread over their period.
        spread = random.random() * min(settings.period, 1.0)  # noqa: S311 - guards nothing
        await asyncio.sleep(settings.initial_delay + spread)
        tally = Tally()
        while True:
            if key.kind is ProbeKind.STARTUP or self._has_started(key, spec):
                answer = await asking.ask(spec, probe, settings.timeout)
                tally = counted(tally, answer, settings)
                if not answer:
                    text = f"{key.kind.value.capitalize()} probe failed"
                    self._event(pod, EventType.WARNING, "Unhealthy", text)
                self._found(pod, key, result=tally.result)
                if key.kind is ProbeKind.STARTUP and tally.result:
                    return
            await asyncio.sleep(settings.period)

    def _has_started(self, key: ProbeKey, spec: ContainerSpec) -> bool:
        if not spec.has_probe("startupProbe"):
            return True
        return bool(self._results.get(ProbeKey(key.container_id, ProbeKind.STARTUP)))

    def _found(self, pod: AgentPod, key: ProbeKey, *, result: bool | None) -> None:
        before = self._results.get(key)
        self._results[key] = result
        if result is not None and result != before:
            _log.info("a probe changed its mind", pod_uid=pod.uid, kind=key.kind, result=result)
            self._changed(ProbeChange(pod.uid, key, result))
