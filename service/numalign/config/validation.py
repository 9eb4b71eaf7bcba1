"""What the kubelet's configuration validation refuses, in its own words.

Separate from reading, because the managers check some of it again with other texts: a
recording of a manager must be able to get past this (`numalign.validation: managers`).
"""

from __future__ import annotations

from numalign.config.kubelet_document import KubeletDocument, read_kubelet_document
from numalign.document.problems import Problems
from numalign.document.section import Section
from numalign.memory.reserved_config import reserved_memory_errors
from numalign.model.cpu_set import CpuSet, CpuSetSyntaxError
from numalign.model.quoting import quoted

TOPOLOGY_POLICIES = ("none", "best-effort", "restricted", "single-numa-node")
TOPOLOGY_SCOPES = ("container", "pod")

_INVALID = "invalid configuration: "


def validate_kubelet(document: object) -> list[str]:
    """Everything that is wrong with the kubelet's keys of a document, unreadable values first."""
    problems = Problems()
    kubelet = read_kubelet_document(Section(document, "", problems))
    return [*problems.sentences(), *kubelet_errors(kubelet)]


def kubelet_errors(kubelet: KubeletDocument) -> list[str]:
    """What the kubelet's validation says to readable keys (TM-16, CPU-17, MEM-7)."""
    errors = []
    policy, scope = kubelet.topology.policy, kubelet.topology.scope
    if policy not in TOPOLOGY_POLICIES:
        allowed = " ".join(quoted(name) for name in TOPOLOGY_POLICIES)
        errors.append(
            f"{_INVALID}topologyManagerPolicy (--topology-manager-policy) {quoted(policy)} "
            f"must be one of: [{allowed}]"
        )
    if scope not in TOPOLOGY_SCOPES:
        container, pod = TOPOLOGY_SCOPES
        errors.append(
            f"{_INVALID}topologyManagerScope (--topology-manager-scope) {quoted(scope)} "
            f"must be one of: {quoted(container)}, or {quoted(pod)}"
        )
    cgroups = kubelet.system_reserved_cgroup or kubelet.kube_reserved_cgroup
    if kubelet.reserved_system_cpus and cgroups:
        errors.append(
            f"{_INVALID}can't use reservedSystemCPUs (--reserved-cpus) with "
            "systemReservedCgroup (--system-reserved-cgroup) or kubeReservedCgroup "
            "(--kube-reserved-cgroup)"
        )
    return [
        *errors,
        *reserved_cpus_errors(kubelet.reserved_system_cpus),
        *reserved_memory_errors(kubelet.reserved_memory),
    ]


def reserved_cpus_errors(text: str) -> list[str]:
    """What is wrong with `reservedSystemCPUs` as a CPU list (CPU-17); nothing can use it then."""
    try:
        CpuSet.parse(text)
    except CpuSetSyntaxError as error:
        return [
            f"{_INVALID}unable to parse reservedSystemCPUs (--reserved-cpus) {text}, error: {error}"
        ]
    return []
