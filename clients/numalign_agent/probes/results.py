"""What probes have found out about the containers that run. Values and pure rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from numalign_agent.containers.spec import ContainerSpec, containers_of
from numalign_agent.pod import AgentPod
from numalign_agent.runners.port import ContainerPhase, RuntimeContainer


class ProbeKind(StrEnum):
    """Which question a probe asks."""

    STARTUP = "startup"
    READINESS = "readiness"
    LIVENESS = "liveness"


@dataclass(frozen=True, slots=True)
class ProbeKey:
    """One probe of one container that runs."""

    container_id: str
    kind: ProbeKind


@dataclass(frozen=True, slots=True)
class ProbeChange:
    """A probe has another result than before."""

    pod_uid: str
    key: ProbeKey
    succeeded: bool


@dataclass(frozen=True, slots=True)
class ProbeSettings:
    """When a probe is asked, and how often it has to agree. Durations are in seconds."""

    initial_delay: float
    period: float
    timeout: float
    successes: int
    failures: int


@dataclass(frozen=True, slots=True)
class Tally:
    """How often in a row a probe said the same, and what counts until it says otherwise."""

    result: bool | None = None
    last: bool | None = None
    in_a_row: int = 0


def settings_of(probe: Mapping[str, Any]) -> ProbeSettings:
    """What a probe's document says, with the defaults of the API."""
    return ProbeSettings(
        initial_delay=float(probe.get("initialDelaySeconds") or 0),
        period=float(probe.get("periodSeconds") or 10),
        timeout=float(probe.get("timeoutSeconds") or 1),
        successes=int(probe.get("successThreshold") or 1),
        failures=int(probe.get("failureThreshold") or 3),
    )


def counted(tally: Tally, answer: bool, settings: ProbeSettings) -> Tally:
    """The tally after one more answer; the result changes when it was said often enough."""
    in_a_row = tally.in_a_row + 1 if answer == tally.last else 1
    enough = in_a_row >= (settings.successes if answer else settings.failures)
    return Tally(answer if enough else tally.result, answer, in_a_row)


@dataclass(frozen=True, slots=True)
class Judged:
    """Ids of containers that run, by what is known of them."""

    ready: frozenset[str]
    started: frozenset[str]
    failing: frozenset[str]


def judged(
    pod: AgentPod,
    containers: Iterable[RuntimeContainer],
    results: Mapping[ProbeKey, bool | None],
) -> Judged:
    """What the results say; a container without a probe is what the probe would make it.

    Not started means not ready. A liveness probe counts only for one that has started.
    """
    specs = {spec.name: spec for spec in containers_of(pod)}
    ready, started, failing = set(), set(), set()
    for container in containers:
        spec = specs.get(container.name)
        if spec is None or container.phase is not ContainerPhase.RUNNING:
            continue

        def found(kind: ProbeKind, container_id: str = container.id) -> bool | None:
            return results.get(ProbeKey(container_id, kind))

        startup = found(ProbeKind.STARTUP)
        has_started = bool(startup) or not has_probe(spec, ProbeKind.STARTUP)
        if has_started:
            started.add(container.id)
            if found(ProbeKind.READINESS) or not has_probe(spec, ProbeKind.READINESS):
                ready.add(container.id)
        if startup is False or (has_started and found(ProbeKind.LIVENESS) is False):
            failing.add(container.id)
    return Judged(frozenset(ready), frozenset(started), frozenset(failing))


def has_probe(spec: ContainerSpec, kind: ProbeKind) -> bool:
    """Whether a container has this probe."""
    return spec.has_probe(f"{kind.value}Probe")
