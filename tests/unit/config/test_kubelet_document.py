"""The kubelet's keys: read as they are, and refused with the kubelet's texts."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from numalign.config.settings import Settings, Validation
from numalign.config.validation import validate_kubelet
from numalign.document.problems import DocumentError
from numalign.document.text import parse_document
from numalign.model.feature_gates import FeatureGates
from numalign.model.ids import NumaId
from numalign.model.quantity import Quantity
from numalign.model.settings import ReservedMemory, TopologySettings

Read = Callable[[str], Settings]

WHOLE = """
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
topologyManagerPolicy: restricted
topologyManagerScope: pod
topologyManagerPolicyOptions: {prefer-closest-numa-nodes: "true"}
cpuManagerPolicy: static
cpuManagerPolicyOptions: {full-pcpus-only: "true"}
reservedSystemCPUs: 0-3,2
systemReserved: {cpu: "1", memory: 1Gi}
kubeReserved: {cpu: 500m, memory: 512Mi, ephemeral-storage: 1Gi, pid: "100"}
evictionHard: {memory.available: 256Mi, nodefs.available: 10%}
memoryManagerPolicy: Static
reservedMemory:
- numaNode: 1
  limits: {memory: 1792Mi, hugepages-2Mi: 1048576}
featureGates: {CPUManagerPolicyAlphaOptions: true}
maxPods: 110
syncFrequency: 1m0s
"""


def test_whole_file(settings: Read) -> None:
    read = settings(WHOLE)

    assert read.topology == TopologySettings(
        policy="restricted",
        scope="pod",
        policy_options={"prefer-closest-numa-nodes": "true"},
    )
    assert read.cpu.policy == "static"
    assert read.cpu.policy_options == {"full-pcpus-only": "true"}
    assert read.cpu.reserved_cpus == "0-3,2"
    assert read.cpu.reserved_milli_cpu == 4000
    assert read.memory.policy == "Static"
    assert read.memory.reserved_memory == (
        ReservedMemory(
            numa_node=NumaId(1),
            limits={
                "memory": Quantity.parse("1792Mi"),
                "hugepages-2Mi": Quantity.parse("1048576"),
            },
        ),
    )
    assert read.memory.node_allocatable_reservation == {"memory": Quantity.parse("1792Mi")}
    assert read.gates == FeatureGates(cpu_manager_policy_alpha_options=True)
    assert read.kubelet["maxPods"] == 110
    assert read.warnings == ()


@pytest.mark.parametrize("text", ["", "{}", "numalign:", "numalign: {}"])
def test_empty_file_is_all_defaults(text: str, settings: Read) -> None:
    read = settings(text)

    assert read.topology == TopologySettings(policy="none", scope="container")
    assert read.cpu.policy == "none"
    assert read.cpu.reserved_milli_cpu is None
    assert read.memory.policy == "None"
    assert read.memory.node_allocatable_reservation == {"memory": Quantity.parse("100Mi")}
    assert read.gates == FeatureGates()
    assert read.warnings == ()


def test_empty_names_count_as_not_given(settings: Read) -> None:
    read = settings(
        'topologyManagerPolicy: ""\ntopologyManagerScope: ""\n'
        'cpuManagerPolicy: ""\nmemoryManagerPolicy: ""'
    )

    assert read.topology == TopologySettings()
    assert (read.cpu.policy, read.memory.policy) == ("none", "None")


def test_unknown_kubelet_key_is_a_warning(settings: Read) -> None:
    read = settings("topologyManagerPolcy: restricted")

    assert read.warnings == ("topologyManagerPolcy: unknown key of KubeletConfiguration, ignored",)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param(
            "topologyManagerPolicy: numa",
            "invalid configuration: topologyManagerPolicy (--topology-manager-policy) "
            '"numa" must be one of: ["none" "best-effort" "restricted" "single-numa-node"]',
            id="TM-16 policy",
        ),
        pytest.param(
            "topologyManagerScope: node",
            'invalid configuration: topologyManagerScope (--topology-manager-scope) "node" '
            'must be one of: "container", or "pod"',
            id="TM-16 scope",
        ),
        pytest.param(
            "{reservedSystemCPUs: 0-1, systemReservedCgroup: /system}",
            "invalid configuration: can't use reservedSystemCPUs (--reserved-cpus) with "
            "systemReservedCgroup (--system-reserved-cgroup) or kubeReservedCgroup "
            "(--kube-reserved-cgroup)",
            id="CPU-17 cgroups",
        ),
        pytest.param(
            "reservedSystemCPUs: 0-x",
            "invalid configuration: unable to parse reservedSystemCPUs (--reserved-cpus) 0-x, "
            'error: strconv.Atoi: parsing "x": invalid syntax',
            id="CPU-17 list",
        ),
        pytest.param(
            "reservedMemory: [{numaNode: 0, limits: {cpu: 1}}]",
            'invalid configuration: the limit type "cpu" for NUMA node 0 is not supported, '
            "only [memory hugepages-<HugePageSize>] is accepted",
            id="MEM-7 type",
        ),
        pytest.param(
            "reservedMemory: [{numaNode: 2, limits: {memory: 0}}]",
            "invalid configuration: reserved memory may not be zero for NUMA node 2 and "
            'resource "memory"',
            id="MEM-7 zero",
        ),
        pytest.param(
            "reservedMemory: [{limits: {memory: 1Gi}}, {numaNode: 0, limits: {memory: 1Gi}}]",
            "invalid configuration: the reserved memory has a duplicate value for NUMA node 0 "
            'and resource "memory"',
            id="MEM-7 twice",
        ),
        pytest.param(
            "kubeReserved: {hugepages-2Mi: 1Gi}",
            '--kube-reserved value failed to parse: cannot reserve "hugepages-2Mi" resource',
            id="MEM-11",
        ),
        pytest.param(
            'systemReserved: {cpu: "-1"}',
            '--system-reserved value failed to parse: resource quantity for "cpu" cannot be '
            "negative: -1",
            id="negative",
        ),
        pytest.param(
            "systemReserved: {memory: lots}",
            '--system-reserved value failed to parse: failed to parse quantity "lots" for '
            '"memory" resource: quantities must match the regular expression '
            "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
            id="no quantity",
        ),
        pytest.param(
            "evictionHard: {memory.available: -5%}",
            "evictionHard.memory.available: eviction percentage threshold memory.available "
            "must be >= 0%: -5%",
            id="EVI-9 negative percentage",
        ),
        pytest.param(
            "apiVersion: v1",
            'apiVersion: must be "kubelet.config.k8s.io/v1beta1", not "v1"',
            id="another version",
        ),
        pytest.param("kind: Pod", 'kind: must be "KubeletConfiguration", not "Pod"', id="kind"),
        pytest.param(
            "cpuManagerPolicyOptions: {full-pcpus-only: true}",
            "cpuManagerPolicyOptions.full-pcpus-only: must be text, not true (write it in quotes)",
            id="option that is no text",
        ),
        pytest.param(
            "reservedMemory: [{numaNode: 0, limits: {memory: 1Zi}}]",
            'reservedMemory[0].limits.memory: "1Zi": quantities must match the regular '
            "expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
            id="limit that is no quantity",
        ),
        pytest.param("[]", "must be a mapping, not a list", id="no mapping"),
    ],
)
def test_refused(text: str, problem: str, settings: Read) -> None:
    with pytest.raises(DocumentError) as refused:
        settings(text)

    assert refused.value.problems == (problem,)
    assert validate_kubelet(parse_document(text, "config.yaml")) == [problem]


def test_every_problem_is_named(settings: Read) -> None:
    text = (
        "{topologyManagerPolicy: x, topologyManagerScope: y, kubeReserved: {gpu: '1'},"
        " evictionHard: {memory.available: 0}, numalign: {validatoin: managers}}"
    )
    with pytest.raises(DocumentError) as refused:
        settings(text)

    assert [problem.split(" (")[0] for problem in refused.value.problems] == [
        '--kube-reserved value failed to parse: cannot reserve "gpu" resource',
        "evictionHard.memory.available: must be text, not 0",
        "numalign.validatoin: unknown key",
        "invalid configuration: topologyManagerPolicy",
        "invalid configuration: topologyManagerScope",
    ]


def test_managers_judge_alone_when_asked_to(settings: Read) -> None:
    read = settings(
        "{topologyManagerPolicy: x, topologyManagerScope: y,"
        " reservedMemory: [{limits: {memory: 0}}], numalign: {validation: managers}}"
    )

    assert read.validation is Validation.MANAGERS
    assert (read.topology.policy, read.topology.scope) == ("x", "y")
    assert read.memory.reserved_memory[0].limits["memory"].is_zero()


def test_a_list_that_is_none_is_refused_all_the_same(settings: Read) -> None:
    with pytest.raises(DocumentError, match="unable to parse reservedSystemCPUs"):
        settings("{reservedSystemCPUs: a, numalign: {validation: managers}}")
