"""What stands behind CPU hints, for the explanation of a verdict."""

from __future__ import annotations

from numalign.cpu.eligibility import container_count, is_left_alone, is_managed_pod, pod_count
from numalign.cpu.hints import minimum_nodes
from numalign.cpu.reuse import reusable_of
from numalign.cpu.state import CpuState
from numalign.cpu.static_setup import StaticSetup
from numalign.model.ids import NumaId
from numalign.model.pod import Container, Pod
from numalign.model.qos import qos_class
from numalign.provider.values import Holder, NodeFacts, ResourceFacts


def cpu_facts(
    setup: StaticSetup, state: CpuState, pod: Pod, container: Container | None
) -> tuple[ResourceFacts, ...]:
    """The CPUs asked for and those of each NUMA node, for a container or (None) the pod.

    Nothing for a request without cpu.
    """
    if is_left_alone(pod, setup.gates):
        count = 0
    elif container is None:
        count = pod_count(pod, setup.gates)
    else:
        count = container_count(pod, container, setup.gates)
    if count == 0 and not _asks_for_cpu(pod, container):
        return ()
    nodes = setup.topology.nodes
    capacity = tuple(cpus.bit_count() for cpus in nodes.values())
    notes = _exclusive_notes(setup, state, pod, count) if count else _why_shared(setup, pod)
    return (
        ResourceFacts(
            resource="cpu",
            requested=count,
            nodes=tuple(_node_facts(setup, state, node) for node in nodes),
            minimum_nodes=minimum_nodes(capacity, count) if count else None,
            note="; ".join(notes),
        ),
    )


def _asks_for_cpu(pod: Pod, container: Container | None) -> bool:
    if container is not None:
        return "cpu" in container.resources.requests
    section = pod.resources
    return (section is not None and "cpu" in section.requests) or any(
        "cpu" in c.resources.requests for c in pod.all_containers()
    )


def _node_facts(setup: StaticSetup, state: CpuState, node: int) -> NodeFacts:
    cpus = setup.topology.nodes[node]
    return NodeFacts(
        node=NumaId(node),
        capacity=cpus.bit_count(),
        reserved=(cpus & setup.reservation.cpus.bits).bit_count(),
        free=(cpus & setup.available(state).bits).bit_count(),
        holders=_holders(state, cpus),
    )


def _holders(state: CpuState, node_cpus: int) -> tuple[Holder, ...]:
    """Who holds CPUs of one node, by pod and container; a pod that holds a set counts once."""
    holders = [
        Holder(pod_uid=pod, container="", amount=(cpus.bits & node_cpus).bit_count())
        for pod, cpus in state.pod_sets.items()
    ]
    holders += [
        Holder(pod_uid=pod, container=container, amount=(cpus.bits & node_cpus).bit_count())
        for pod, containers in state.assignments.items()
        if pod not in state.pod_sets
        for container, cpus in containers.items()
    ]
    holders = [holder for holder in holders if holder.amount]
    return tuple(sorted(holders, key=lambda holder: (holder.pod_uid, holder.container)))


def _why_shared(setup: StaticSetup, pod: Pod) -> list[str]:
    """Why a request for cpu gets no exclusive CPUs."""
    gates = setup.gates
    if is_left_alone(pod, gates):
        return ["pods with pod-level resources get no exclusive CPUs on this node"]
    qos = qos_class(pod, gates)
    if qos != "Guaranteed":
        return [f"no exclusive CPUs: the pod is {qos}, not Guaranteed"]
    if is_managed_pod(pod, gates):
        return ["no exclusive CPUs: not a whole number with equal requests and limits"]
    return ["no exclusive CPUs: the request is not a whole number"]


def _exclusive_notes(setup: StaticSetup, state: CpuState, pod: Pod, count: int) -> list[str]:
    notes = []
    options, per_core = setup.options, setup.topology.group_size
    if options.full_pcpus_only:
        physical = setup.free_on_whole_cores(state, reusable_of(state, pod.uid))
        notes.append(
            f"full-pcpus-only: multiples of {per_core} CPUs, {physical} are free on whole cores"
        )
        if count % per_core:
            notes.append(f"{count} is not a multiple of {per_core}")
    if options.prefer_align_cpus_by_uncorecache:
        notes.append(
            "prefer-align-cpus-by-uncorecache: one cache has "
            f"{setup.topology.cpus_per_uncore} CPUs; best effort, never a reason to reject"
        )
        if setup.switches.few_caches:
            notes.append("fewUncoreCaches: whole cores of as few caches as possible")
    if options.distribute_cpus_across_numa:
        notes.append("distribute-cpus-across-numa: spread evenly over the chosen NUMA nodes")
        if setup.switches.few_sockets and options.align_by_socket:
            notes.append("fewSockets: over NUMA nodes of as few sockets as possible")
    if options.align_by_socket:
        notes.append("align-by-socket: NUMA nodes of as few sockets are preferred as well")
    if setup.switches.keep_shared and options.strict_cpu_reservation:
        notes.append("keepSharedCpus: one CPU has to stay shared")
    reusable = reusable_of(state, pod.uid)
    if reusable:
        notes.append(
            f'init containers leave CPUs "{reusable}" to be used again: '
            "their NUMA nodes must be in the set"
        )
    return notes
