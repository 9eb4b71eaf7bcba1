"""What goes beyond the kubelet's placement: the `placement` part of the `numalign` section.

Every switch of it changes where something goes or whether a pod may start, and is off by default.
"""

from __future__ import annotations

from numalign.config.settings import Compatibility, MachineRoot, Settings
from numalign.document.section import Section
from numalign.model.settings import CpuSwitches, Placement

PLACEMENT = "numalign.placement"
"""The path of the section."""

_NUMA, _SOCKET = "distribute-cpus-across-numa", "align-by-socket"

_KEYS = (
    "numaAllocationStrategy",
    "cpuAndMemoryFirst",
    "retryInPodScope",
    "keepSharedCpus",
    "reuseInitCpus",
    "fewUncoreCaches",
    "fewSockets",
    "kernelHugePages",
)


def read_placement(section: Section) -> Placement:
    """The switches; mistakes are recorded."""
    section.refuse_unknown(_KEYS)
    default = Placement()
    return Placement(
        numa_allocation_strategy=section.choice(
            "numaAllocationStrategy", default.numa_allocation_strategy
        ),
        cpu_and_memory_first=section.boolean("cpuAndMemoryFirst", default.cpu_and_memory_first),
        retry_in_pod_scope=section.boolean("retryInPodScope", default.retry_in_pod_scope),
        cpu=CpuSwitches(
            keep_shared=section.boolean("keepSharedCpus", default.cpu.keep_shared),
            reuse_init=section.boolean("reuseInitCpus", default.cpu.reuse_init),
            few_caches=section.boolean("fewUncoreCaches", default.cpu.few_caches),
            few_sockets=section.boolean("fewSockets", default.cpu.few_sockets),
        ),
        kernel_huge_pages=section.choice("kernelHugePages", default.kernel_huge_pages),
    )


def placement_document(placement: Placement) -> dict[str, object]:
    """The section that says what `placement` does."""
    return {
        "numaAllocationStrategy": placement.numa_allocation_strategy.value,
        "cpuAndMemoryFirst": placement.cpu_and_memory_first,
        "retryInPodScope": placement.retry_in_pod_scope,
        "keepSharedCpus": placement.cpu.keep_shared,
        "reuseInitCpus": placement.cpu.reuse_init,
        "fewUncoreCaches": placement.cpu.few_caches,
        "fewSockets": placement.cpu.few_sockets,
        "kernelHugePages": placement.kernel_huge_pages.value,
    }


def switches_on(placement: Placement) -> tuple[str, ...]:
    """The switches by which placement is not the kubelet's, by path and value."""
    document = placement_document(placement)
    return tuple(f"{PLACEMENT}.{key}: {str(document[key]).lower()}" for key in _keys_on(placement))


def without_effect(settings: Settings) -> tuple[str, ...]:
    """A warning for each switch that is on and changes nothing under the policies configured."""
    needs = {
        "numaAllocationStrategy": (
            "with topologyManagerPolicy none",
            settings.topology.policy not in {"", "none"},
        ),
        "retryInPodScope": (
            "without compatibility safe, topologyManagerScope container and a policy that aligns",
            settings.compatibility is Compatibility.SAFE
            and settings.topology.scope in {"", "container"}
            and settings.topology.policy not in {"", "none"},
        ),
        "cpuAndMemoryFirst": (
            "without topologyManagerPolicy best-effort",
            settings.topology.policy == "best-effort",
        ),
        "keepSharedCpus": (
            "without cpuManagerPolicy static and its option strict-cpu-reservation",
            _has_cpu_option(settings, "strict-cpu-reservation"),
        ),
        "fewUncoreCaches": (
            "without cpuManagerPolicy static and its option prefer-align-cpus-by-uncorecache",
            _has_cpu_option(settings, "prefer-align-cpus-by-uncorecache"),
        ),
        "fewSockets": (
            f"without cpuManagerPolicy static and its options {_NUMA} and {_SOCKET}",
            _has_cpu_option(settings, _NUMA) and _has_cpu_option(settings, _SOCKET),
        ),
        "kernelHugePages": (
            "without memoryManagerPolicy Static and a machine that is read from a root",
            settings.memory.policy == "Static" and isinstance(settings.machine, MachineRoot),
        ),
        "reuseInitCpus": ("without cpuManagerPolicy static", settings.cpu.policy == "static"),
    }
    return tuple(
        f"{PLACEMENT}.{key}: has no effect {needs[key][0]}"
        for key in _keys_on(settings.placement)
        if not needs[key][1]
    )


def _keys_on(placement: Placement) -> tuple[str, ...]:
    off = placement_document(Placement())
    return tuple(key for key, value in placement_document(placement).items() if value != off[key])


def _has_cpu_option(settings: Settings, name: str) -> bool:
    options = settings.cpu.policy_options
    # A value that is no boolean is refused by the CPU provider, in the kubelet's words.
    return settings.cpu.policy == "static" and options.get(name, "f")[:1] not in {"0", "f", "F"}
