"""The kubelet's start: a stored state is taken as it is, or the start is refused.

Rules CPU-28, CPU-29, CPU-31..CPU-33.
"""

from __future__ import annotations

from dataclasses import replace

from numalign.cpu.start_rules import STAGE, StartRules
from numalign.cpu.state import Checkpoint, CheckpointError, CpuState, decode, exclusive_cpus
from numalign.errors import StartError
from numalign.model.cpu_set import CpuSet, CpuSetSyntaxError
from numalign.model.quoting import quoted
from numalign.provider.engine import Started


def refuse(stored: bytes | None, rules: StartRules) -> Started[CpuState]:
    """The stored state, if it is exactly what the configuration allows.

    Raises StartError with the kubelet's message otherwise.
    """
    state = CpuState() if stored is None else _restored(stored, rules)
    if rules.policy == "none":
        return Started(state)
    return Started(_validated(state, rules))


def _restored(stored: bytes, rules: StartRules) -> CpuState:
    """The state as stored (CPU-29)."""
    try:
        return _parsed(decode(stored), rules)
    except (CheckpointError, _Mismatch) as error:
        raise StartError(
            STAGE,
            f"could not restore state from checkpoint: {error}, please drain this node and "
            f'delete the CPU manager checkpoint file "{rules.state_file}" before restarting '
            "Kubelet",
        ) from error


class _Mismatch(ValueError):
    """The stored state is readable and yet cannot be restored."""


def _parsed(checkpoint: Checkpoint, rules: StartRules) -> CpuState:
    if checkpoint.pod_entries is not None and not rules.pod_sets:
        # A file with pod sets has a checksum that a kubelet without them cannot verify (CPU-26).
        raise _Mismatch("checkpoint is corrupted")
    if checkpoint.policy_name != rules.policy:
        raise _Mismatch(
            f"configured policy {quoted(rules.policy)} differs from state checkpoint policy "
            f"{quoted(checkpoint.policy_name)}"
        )
    try:
        default = CpuSet.parse(checkpoint.default_cpu_set)
    except CpuSetSyntaxError as error:
        raise _Mismatch(
            f"could not parse default cpu set {quoted(checkpoint.default_cpu_set)}: {error}"
        ) from error
    return CpuState(
        default=default,
        assignments={
            pod: {
                container: _assignment(text, container, pod)
                for container, text in containers.items()
            }
            for pod, containers in checkpoint.entries.items()
        },
        pod_sets={pod: _pod_set(text) for pod, text in (checkpoint.pod_entries or {}).items()},
    )


def _pod_set(text: str) -> CpuSet:
    try:
        return CpuSet.parse(text)
    except CpuSetSyntaxError as error:
        raise _Mismatch("checkpoint is corrupted") from error


def _assignment(text: str, container: str, pod: str) -> CpuSet:
    try:
        return CpuSet.parse(text)
    except CpuSetSyntaxError as error:
        raise _Mismatch(
            f"could not parse cpuset {quoted(text)} for container {quoted(container)} "
            f"in pod {quoted(pod)}: {error}"
        ) from error


def _validated(state: CpuState, rules: StartRules) -> CpuState:
    """The state, with the shared set filled in if it is a fresh one (CPU-32)."""
    default = state.default
    if not default:
        if state.assignments:
            raise StartError(STAGE, "default cpuset cannot be empty")
        return replace(state, default=rules.managed)
    shared_reserved = rules.reserved & default
    if rules.strict and shared_reserved:
        raise StartError(
            STAGE,
            f'some of strictly reserved cpus: "{shared_reserved}" are present in '
            f'defaultCpuSet: "{default}"',
        )
    if not rules.strict and shared_reserved != rules.reserved:
        raise StartError(
            STAGE,
            f'not all reserved cpus: "{rules.reserved}" are present in defaultCpuSet: "{default}"',
        )
    for pod, containers in sorted(state.assignments.items()):
        for container, cpus in sorted(containers.items()):
            if not cpus.isdisjoint(default):
                raise StartError(
                    STAGE,
                    f'pod: {pod}, container: {container} cpuset: "{cpus}" overlaps with '
                    f'default cpuset "{default}"',
                )
    found = default | exclusive_cpus(state.assignments)
    for cpus in state.pod_sets.values():
        found |= cpus
    if found != rules.managed:
        raise StartError(
            STAGE,
            f'current set of available CPUs "{rules.managed}" doesn\'t match with CPUs in '
            f'state "{found}"',
        )
    return state
