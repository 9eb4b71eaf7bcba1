"""The `placement` section: its switches, what is refused, and what is said of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from numalign.config.placement import switches_on
from numalign.config.settings import Settings
from numalign.document.problems import DocumentError
from numalign.model.settings import CpuSwitches, KernelHugePages, NumaAllocationStrategy, Placement

Read = Callable[[str], Settings]

ALL_ON = """
topologyManagerPolicy: best-effort
cpuManagerPolicy: static
cpuManagerPolicyOptions: {strict-cpu-reservation: "true", prefer-align-cpus-by-uncorecache: "true"}
reservedSystemCPUs: "0"
memoryManagerPolicy: Static
reservedMemory: [{numaNode: 0, limits: {memory: 100Mi}}]
numalign:
  placement:
    numaAllocationStrategy: most-allocated
    cpuAndMemoryFirst: true
    retryInPodScope: true
    keepSharedCpus: true
    reuseInitCpus: true
    fewUncoreCaches: true
    kernelHugePages: defer
"""


def test_everything_is_off_by_default(settings: Read) -> None:
    read = settings("")

    assert read.placement == Placement()
    assert switches_on(read.placement) == ()


def test_a_switch_whose_options_exclude_those_of_another(settings: Read) -> None:
    read = settings(
        """
cpuManagerPolicy: static
cpuManagerPolicyOptions: {distribute-cpus-across-numa: "true", align-by-socket: "true"}
reservedSystemCPUs: "0"
featureGates: {CPUManagerPolicyAlphaOptions: true}
numalign: {placement: {fewSockets: true}}
"""
    )

    assert read.placement.cpu == CpuSwitches(few_sockets=True)
    assert read.warnings == ()


def test_everything_on(settings: Read) -> None:
    read = settings(ALL_ON)

    assert read.placement == Placement(
        numa_allocation_strategy=NumaAllocationStrategy.MOST_ALLOCATED,
        cpu_and_memory_first=True,
        retry_in_pod_scope=True,
        cpu=CpuSwitches(keep_shared=True, reuse_init=True, few_caches=True),
        kernel_huge_pages=KernelHugePages.DEFER,
    )
    assert switches_on(read.placement) == (
        "numalign.placement.numaAllocationStrategy: most-allocated",
        "numalign.placement.cpuAndMemoryFirst: true",
        "numalign.placement.retryInPodScope: true",
        "numalign.placement.keepSharedCpus: true",
        "numalign.placement.reuseInitCpus: true",
        "numalign.placement.fewUncoreCaches: true",
        "numalign.placement.kernelHugePages: defer",
    )
    assert read.warnings == ()


@pytest.mark.parametrize(
    ("section", "problem"),
    [
        pytest.param(
            "{numaAllocationStrategy: fullest}",
            'numalign.placement.numaAllocationStrategy: must be one of "none", '
            '"most-allocated", "least-allocated", not "fullest"',
            id="strategy",
        ),
        pytest.param(
            "{keepSharedCpus: 1}",
            "numalign.placement.keepSharedCpus: must be true or false, not 1",
            id="boolean",
        ),
        pytest.param("{tieBreak: x}", "numalign.placement.tieBreak: unknown key", id="unknown"),
    ],
)
def test_mistakes(settings: Read, section: str, problem: str) -> None:
    with pytest.raises(DocumentError) as refused:
        settings(f"numalign: {{placement: {section}}}")

    assert problem in str(refused.value)


@pytest.mark.parametrize(
    ("section", "warning"),
    [
        pytest.param(
            "{keepSharedCpus: true}",
            "numalign.placement.keepSharedCpus: has no effect without cpuManagerPolicy static and "
            "its option strict-cpu-reservation",
            id="shared",
        ),
        pytest.param(
            "{reuseInitCpus: true}",
            "numalign.placement.reuseInitCpus: has no effect without cpuManagerPolicy static",
            id="reuse",
        ),
        pytest.param(
            "{fewUncoreCaches: true}",
            "numalign.placement.fewUncoreCaches: has no effect without cpuManagerPolicy static "
            "and its option prefer-align-cpus-by-uncorecache",
            id="caches",
        ),
        pytest.param(
            "{kernelHugePages: refuse}",
            "numalign.placement.kernelHugePages: has no effect without memoryManagerPolicy Static "
            "and a machine that is read from a root",
            id="pages",
        ),
        pytest.param(
            "{fewSockets: true}",
            "numalign.placement.fewSockets: has no effect without cpuManagerPolicy static and its "
            "options distribute-cpus-across-numa and align-by-socket",
            id="sockets",
        ),
        pytest.param(
            "{cpuAndMemoryFirst: true}",
            "numalign.placement.cpuAndMemoryFirst: has no effect without topologyManagerPolicy "
            "best-effort",
            id="first",
        ),
        pytest.param(
            "{retryInPodScope: true}",
            "numalign.placement.retryInPodScope: has no effect without compatibility safe, "
            "topologyManagerScope container and a policy that aligns",
            id="retry",
        ),
        pytest.param("{keepSharedCpus: false}", None, id="shared-off"),
        pytest.param(
            "{numaAllocationStrategy: least-allocated}",
            "numalign.placement.numaAllocationStrategy: has no effect with "
            "topologyManagerPolicy none",
            id="strategy",
        ),
        pytest.param("{numaAllocationStrategy: none}", None, id="strategy-none"),
    ],
)
def test_a_switch_without_effect_is_a_warning(
    settings: Read, section: str, warning: str | None
) -> None:
    read = settings(f"numalign: {{placement: {section}}}")

    assert read.warnings == (() if warning is None else (warning,))
