"""The KubeletConfiguration part of a document: the keys that decide something here.

Reads types and quantities only; whether names and combinations are right is asked in
`validation`, because the managers have their own texts for some of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from numalign.config.eviction_memory import (
    SIGNAL,
    ThresholdError,
    effective_threshold,
    threshold_quantity,
)
from numalign.config.feature_gates import read_feature_gates
from numalign.config.kubelet_keys import KUBELET_KEYS
from numalign.document.section import Section, shown
from numalign.model.feature_gates import FeatureGates
from numalign.model.ids import NumaId
from numalign.model.quantity import Quantity
from numalign.model.quoting import quoted
from numalign.model.settings import ReservedMemory, TopologySettings

API_VERSION = "kubelet.config.k8s.io/v1beta1"
KIND = "KubeletConfiguration"
EXTENSION = "numalign"

_RESERVABLE = frozenset({"cpu", "memory", "ephemeral-storage", "pid"})
_FLAG_OF = {"kubeReserved": "--kube-reserved", "systemReserved": "--system-reserved"}


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeletDocument:
    """What the kubelet's keys say.

    `memory_threshold` is the hard eviction threshold on memory in force, empty if none is.
    """

    topology: TopologySettings
    cpu_policy: str
    cpu_policy_options: Mapping[str, str]
    reserved_system_cpus: str
    kube_reserved: Mapping[str, Quantity]
    system_reserved: Mapping[str, Quantity]
    kube_reserved_cgroup: str
    system_reserved_cgroup: str
    memory_threshold: str
    memory_policy: str
    reserved_memory: tuple[ReservedMemory, ...]
    gates: FeatureGates
    warnings: tuple[str, ...] = ()


def read_kubelet_document(section: Section) -> KubeletDocument:
    """Read the kubelet's keys of the document that `section` is the whole of.

    Mistakes are recorded in its problems. An empty policy or scope name counts as not given,
    as in the kubelet. Keys that KubeletConfiguration does not have are warnings: the kubelet
    reads leniently too.
    """
    _check_kind(section)
    unknown = tuple(
        f"{section.at(name)}: unknown key of {KIND}, ignored"
        for name in section.names()
        if name not in KUBELET_KEYS and name != EXTENSION
    )
    read = read_feature_gates(section.section("featureGates"))
    return KubeletDocument(
        topology=TopologySettings(
            policy=section.text("topologyManagerPolicy") or "none",
            scope=section.text("topologyManagerScope") or "container",
            policy_options=section.text_map("topologyManagerPolicyOptions"),
        ),
        cpu_policy=section.text("cpuManagerPolicy") or "none",
        cpu_policy_options=section.text_map("cpuManagerPolicyOptions"),
        reserved_system_cpus=section.text("reservedSystemCPUs"),
        kube_reserved=_reserved(section, "kubeReserved"),
        system_reserved=_reserved(section, "systemReserved"),
        kube_reserved_cgroup=section.text("kubeReservedCgroup"),
        system_reserved_cgroup=section.text("systemReservedCgroup"),
        memory_threshold=_memory_threshold(section),
        memory_policy=section.text("memoryManagerPolicy") or "None",
        reserved_memory=tuple(_entry(entry) for entry in section.sections("reservedMemory")),
        gates=read.gates,
        warnings=(*unknown, *read.warnings),
    )


def _check_kind(section: Section) -> None:
    for key, expected in (("apiVersion", API_VERSION), ("kind", KIND)):
        if section.text(key, expected) != expected:
            section.wrong(key, f"must be {quoted(expected)}, not {shown(section.raw(key))}")


def _reserved(section: Section, key: str) -> dict[str, Quantity]:
    """An entry of kubeReserved or systemReserved, with the kubelet's texts (MEM-11)."""
    reserved = {}
    prefix = f"{_FLAG_OF[key]} value failed to parse: "
    for name, text in section.text_map(key).items():
        if name not in _RESERVABLE:
            section.problems.say(f"{prefix}cannot reserve {quoted(name)} resource")
            continue
        try:
            quantity = Quantity.parse(text)
        except ValueError as error:
            section.problems.say(
                f"{prefix}failed to parse quantity {quoted(text)} for {quoted(name)} resource: "
                f"{error}"
            )
            continue
        if quantity.sign() < 0:
            section.problems.say(
                f"{prefix}resource quantity for {quoted(name)} cannot be negative: {text}"
            )
            continue
        reserved[name] = quantity
    return reserved


def _memory_threshold(section: Section) -> str:
    """The threshold in force; a wrong one is recorded and counts as none."""
    hard = section.text_map("evictionHard") if "evictionHard" in section else None
    threshold = effective_threshold(hard, section.boolean("mergeDefaultEvictionSettings"))
    try:
        threshold_quantity(threshold, lambda: 0)
    except ThresholdError as error:
        section.section("evictionHard").wrong(SIGNAL, str(error))
        return ""
    return threshold


def _entry(section: Section) -> ReservedMemory:
    return ReservedMemory(
        numa_node=NumaId(section.integer("numaNode", 0)), limits=section.quantity_map("limits")
    )
