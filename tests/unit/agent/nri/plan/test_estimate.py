"""What is read off a container's cgroup settings, and that Admission can judge it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from numalign.kube.pod_decode import pod_from_message
from numalign.kube.pod_json import pod_from_json
from numalign.model.feature_gates import FeatureGates
from numalign.model.qos import is_guaranteed as is_guaranteed_pod
from numalign_agent.nri.plan.estimate import CgroupSettings, estimated_pod, is_guaranteed

TWO = CgroupSettings(
    parent="/kubepods/pod6f5e", quota=200_000, period=100_000, shares=2048, memory=1 << 30
)


def amounts(settings: CgroupSettings) -> Any:
    pod = estimated_pod("uid", "name", "ns", "app", settings)
    return None if pod is None else pod["spec"]["containers"][0]["resources"]["limits"]


@pytest.mark.parametrize(
    ("parent", "guaranteed"),
    [
        pytest.param("/kubepods/pod6f5e-aa", True, id="cgroupfs"),
        pytest.param("/kubepods/burstable/pod6f5e", False, id="cgroupfs-burstable"),
        pytest.param("/kubepods/besteffort/pod6f5e", False, id="cgroupfs-besteffort"),
        pytest.param("kubepods-pod6f5e_aa.slice", True, id="systemd"),
        pytest.param("kubepods-burstable-pod6f5e.slice", False, id="systemd-burstable"),
        pytest.param(
            "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod1.slice", True, id="rooted"
        ),
        pytest.param("/system.slice/docker", False, id="no-kubelets"),
        pytest.param("", False, id="none"),
    ],
)
def test_who_is_guaranteed(parent: str, guaranteed: bool) -> None:
    assert is_guaranteed(parent) is guaranteed


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        pytest.param(TWO, {"cpu": "2000m", "memory": "1073741824"}, id="two-cpus"),
        pytest.param(
            replace(TWO, quota=150_000), {"cpu": "1500m", "memory": "1073741824"}, id="fraction"
        ),
        pytest.param(
            replace(TWO, quota=0), {"cpu": "2000m", "memory": "1073741824"}, id="quotas-are-off"
        ),
        pytest.param(
            replace(TWO, hugepages=(("2MB", 4 << 20), ("1GB", 0), ("odd", 5))),
            {"cpu": "2000m", "memory": "1073741824", "hugepages-2Mi": "4194304"},
            id="huge-pages",
        ),
        pytest.param(replace(TWO, memory=0), None, id="no-memory-limit"),
        pytest.param(replace(TWO, quota=0, shares=0), None, id="no-cpu"),
        pytest.param(replace(TWO, parent="/kubepods/burstable/pod1"), None, id="burstable"),
    ],
)
def test_amounts(settings: CgroupSettings, expected: dict[str, str] | None) -> None:
    assert amounts(settings) == expected


def test_it_is_a_guaranteed_pod_of_its_own() -> None:
    document = estimated_pod("uid", "name", "ns", "app", TWO)
    assert document is not None
    pod = pod_from_message(pod_from_json(document))

    assert pod.uid == "estimated:uid:app"
    assert is_guaranteed_pod(pod, FeatureGates())
    assert document["metadata"]["annotations"] == {"numalign.io/estimated": "true"}
