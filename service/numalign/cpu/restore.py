"""Giving a pod back the CPUs that the record says it has, where the books have lost them.

Separate from the start, which fits what was stored: here the stored books are gone, and the
Topology Manager's record stands in for them.
"""

from __future__ import annotations

from dataclasses import replace

from numalign.cpu.start_rules import StartRules
from numalign.cpu.state import CpuState, union
from numalign.model.cpu_set import NO_CPUS, CpuSet
from numalign.provider.engine import Lost, Recorded, Restored


def restore(state: CpuState, recorded: Recorded, rules: StartRules) -> Restored[CpuState]:
    """`state` with the recorded CPUs of one pod that are free, on the machine, not reserved.

    Containers of a pod may share CPUs (reuse, pod sets), so CPUs that the pod has already
    count as free for it. A set of the pod as a whole comes first: its containers take theirs
    from it.
    """
    lost: list[Lost] = []
    pod_uid = recorded.pod_uid
    pod_set = recorded.pod_holding.cpus
    if pod_set and rules.pod_sets and pod_uid not in state.pod_sets:
        problem = _problem(pod_set, state, recorded, rules)
        if problem:
            lost.append(Lost(container="", message=f'its set of CPUs "{pod_set}": {problem}'))
        else:
            state = replace(
                state,
                default=state.default - pod_set,
                pod_sets={**state.pod_sets, pod_uid: pod_set},
            )
    for holding in recorded.holdings:
        cpus = holding.cpus
        if not cpus or state.assignment(pod_uid, holding.container) is not None:
            continue
        problem = _problem(cpus, state, recorded, rules)
        if problem:
            lost.append(Lost(container=holding.container, message=f'CPUs "{cpus}": {problem}'))
            continue
        state = replace(state, default=state.default - cpus)
        state = state.with_assignment(pod_uid, holding.container, cpus)
    return Restored(_without_empty_set(state, recorded), tuple(lost))


def _problem(cpus: CpuSet, state: CpuState, recorded: Recorded, rules: StartRules) -> str:
    """Why the pod cannot have `cpus`; empty if it can."""
    if rules.policy == "none":
        return "the policy none gives no exclusive CPUs"
    reserved = cpus & rules.reserved
    if reserved:
        return f'"{reserved}" reserved now'
    gone = cpus - rules.managed
    if gone:
        return f'"{gone}" not on the machine'
    own = union(state.assignments.get(recorded.pod_uid, {}))
    own |= state.pod_sets.get(recorded.pod_uid, NO_CPUS)
    taken = cpus - state.default - own
    if taken:
        return f'"{taken}" held by another pod'
    return ""


def _without_empty_set(state: CpuState, recorded: Recorded) -> CpuState:
    """A set that no container of its pod uses would never be given back."""
    pod_uid = recorded.pod_uid
    if pod_uid not in state.pod_sets or pod_uid in state.assignments:
        return state
    return replace(
        state,
        default=state.default | state.pod_sets[pod_uid],
        pod_sets={pod: cpus for pod, cpus in state.pod_sets.items() if pod != pod_uid},
    )
