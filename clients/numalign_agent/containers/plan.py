"""What has to be done to a pod's containers now: start, stop, or wait.

Pure. Init containers run one after the other; sidecars among them go on running and are
started again when they end; app containers start together when all of those are through.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from numalign_agent.containers.spec import (
    ContainerKind,
    ContainerSpec,
    RestartPolicy,
    containers_of,
    restart_policy,
)
from numalign_agent.pod import AgentPod
from numalign_agent.runners.port import ContainerPhase, RuntimeContainer

Pause = Callable[[RuntimeContainer], float]
"""Seconds until a container that ended may be started again (0: now)."""


@dataclass(frozen=True, slots=True)
class Start:
    """A container to start; `instead_of` is the one that it follows, if any."""

    spec: ContainerSpec
    attempt: int
    instead_of: RuntimeContainer | None = None


@dataclass(frozen=True, slots=True)
class Stop:
    """A running container to end, and why."""

    container: RuntimeContainer
    why: str


@dataclass(frozen=True, slots=True)
class ContainerPlan:
    """Stops come first, then starts in order; `pauses` are seconds by container name."""

    stops: tuple[Stop, ...] = ()
    starts: tuple[Start, ...] = ()
    pauses: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Seen:
    """What is known of the containers, and how to judge it."""

    latest: Mapping[str, RuntimeContainer]
    started: frozenset[str]
    failing: frozenset[str]
    pause: Pause


def latest_of(containers: Sequence[RuntimeContainer]) -> dict[str, RuntimeContainer]:
    """The last attempt at each container, by name."""
    latest: dict[str, RuntimeContainer] = {}
    for container in containers:
        known = latest.get(container.name)
        if known is None or container.attempt > known.attempt:
            latest[container.name] = container
    return latest


def plan(
    pod: AgentPod,
    containers: Sequence[RuntimeContainer],
    *,
    started: frozenset[str],
    failing: frozenset[str],
    pause: Pause,
) -> ContainerPlan:
    """What to do next.

    `started` are the ids of running containers whose startup probe (or the lack of one) says
    that they have started, `failing` those whose liveness or startup probe failed.
    """
    seen = _Seen(latest_of(containers), started, failing, pause)
    policy = restart_policy(pod)
    specs = list(containers_of(pod))
    initialized = _is_initialized(specs, seen.latest)
    stops: list[Stop] = []
    starts: list[Start] = []
    pauses: dict[str, float] = {}

    def judge(spec: ContainerSpec) -> bool:
        """Plan for one container; whether what comes after it may start."""
        known = seen.latest.get(spec.name)
        why = _why_stop(spec, known, seen)
        if known is not None and why:
            stops.append(Stop(known, why))
            if _comes_again(spec, policy, exit_code=1) or "changed" in why:
                starts.append(Start(spec, known.attempt + 1, known))
            return False
        if not _needs_start(spec, known, policy):
            return _lets_pass(spec, known, seen)
        seconds = 0.0 if known is None else _pause_of(known, seen)
        if seconds > 0:
            pauses[spec.name] = seconds
        else:
            starts.append(Start(spec, 0 if known is None else known.attempt + 1, known))
        return False

    for spec in specs:
        if spec.kind is ContainerKind.APP:
            judge(spec)
        elif initialized and spec.kind is ContainerKind.INIT:
            continue
        elif not judge(spec) and not initialized:
            break
    return ContainerPlan(tuple(stops), tuple(starts), pauses)


def _is_initialized(specs: Sequence[ContainerSpec], latest: Mapping[str, RuntimeContainer]) -> bool:
    """Whether an app container was started since the machine was: init containers are through."""
    apps = {spec.name for spec in specs if spec.kind is ContainerKind.APP}
    return any(
        name in apps and not container.earlier_boot and container.phase in _HAVE_RUN
        for name, container in latest.items()
    )


_HAVE_RUN = frozenset({ContainerPhase.RUNNING, ContainerPhase.EXITED})


def _why_stop(spec: ContainerSpec, known: RuntimeContainer | None, seen: _Seen) -> str:
    if known is None or known.phase is not ContainerPhase.RUNNING:
        return ""
    if known.spec_hash != spec.hash:
        return f"Container {spec.name} definition changed, will be restarted"
    if known.id in seen.failing:
        return f"Container {spec.name} failed its liveness or startup probe, will be restarted"
    return ""


def _needs_start(
    spec: ContainerSpec, known: RuntimeContainer | None, policy: RestartPolicy
) -> bool:
    if known is None or known.phase is ContainerPhase.CREATED:
        return True
    if known.phase is ContainerPhase.RUNNING:
        return False
    if known.phase is ContainerPhase.UNKNOWN:
        return True
    if spec.kind is ContainerKind.INIT and known.exit_code == 0:
        return known.earlier_boot
    return _comes_again(spec, policy, known.exit_code)


def _comes_again(spec: ContainerSpec, policy: RestartPolicy, exit_code: int | None) -> bool:
    """Whether a container that ended is started again, sooner or later."""
    match spec.kind:
        case ContainerKind.SIDECAR:
            return True
        case ContainerKind.INIT:
            return policy is not RestartPolicy.NEVER
        case ContainerKind.APP:
            if policy is RestartPolicy.ALWAYS:
                return True
            return policy is RestartPolicy.ON_FAILURE and exit_code != 0


def _lets_pass(spec: ContainerSpec, known: RuntimeContainer | None, seen: _Seen) -> bool:
    """Whether what comes after an init container or sidecar may start."""
    if known is None:
        return False
    if spec.kind is ContainerKind.SIDECAR:
        return known.phase is ContainerPhase.RUNNING and known.id in seen.started
    return known.phase is ContainerPhase.EXITED and known.exit_code == 0


def _pause_of(known: RuntimeContainer, seen: _Seen) -> float:
    return seen.pause(known) if known.phase is ContainerPhase.EXITED else 0.0
