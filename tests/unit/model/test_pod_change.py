"""What changed in a pod, and what of it a resize can change."""

from __future__ import annotations

from typing import Any

import pytest

from numalign.kube.pod_decode import pod_from_message
from numalign.kube.pod_json import pod_from_json
from numalign.model.feature_gates import FeatureGates
from numalign.model.pod import Pod
from numalign.model.pod_change import changed_beyond_resize, changed_field

GATES = FeatureGates()
NO_INITS = FeatureGates(in_place_pod_vertical_scaling_init_containers=False)
NO_POD_LEVEL = FeatureGates(in_place_pod_level_resources_vertical_scaling=False)


def container(name: str, restart: str | None = None, **requests: str) -> dict[str, Any]:
    amounts = {name.replace("_", "/"): value for name, value in requests.items()}
    limits = {name: value for name, value in amounts.items() if "/" in name}
    made: dict[str, Any] = {"name": name, "resources": {"requests": amounts, "limits": limits}}
    return made if restart is None else made | {"restartPolicy": restart}


def pod(*containers: dict[str, Any], qos: str = "", **spec: Any) -> Pod:
    document = {
        "metadata": {"name": "p", "uid": "u"},
        "spec": {"containers": list(containers) or [container("c", cpu="1")], **spec},
        "status": {"qosClass": qos} if qos else {},
    }
    return pod_from_message(pod_from_json(document))


@pytest.mark.parametrize(
    ("old", "new", "field", "beyond"),
    [
        pytest.param(pod(), pod(), None, None, id="nothing"),
        pytest.param(
            pod(container("c", cpu="1")),
            pod(container("c", cpu="1000m")),
            None,
            None,
            id="by-value",
        ),
        pytest.param(
            pod(container("c", cpu="1")),
            pod(container("c", cpu="2")),
            "spec.containers[0].resources.requests[cpu]",
            None,
            id="cpu",
        ),
        pytest.param(
            pod(container("c", cpu="1")),
            pod(container("c", cpu="1", memory="1Gi")),
            "spec.containers[0].resources.requests[memory]",
            None,
            id="memory-is-added",
        ),
        pytest.param(
            pod(container("c", cpu="1")),
            pod(container("c", cpu="2", example_gpu="1")),
            "spec.containers[0].resources.requests[cpu]",
            "spec.containers[0].resources.requests[example/gpu]",
            id="cpu-and-a-device",
        ),
        pytest.param(
            pod(container("c", cpu="1")),
            pod(container("d", cpu="1")),
            "spec.containers[0].name",
            "spec.containers[0].name",
            id="renamed",
        ),
        pytest.param(
            pod(container("c", cpu="1")),
            pod(container("c", cpu="1"), container("d")),
            "spec.containers",
            "spec.containers",
            id="another-container",
        ),
        pytest.param(
            pod(initContainers=[container("i", cpu="1")]),
            pod(initContainers=[container("i", "Always", cpu="1")]),
            "spec.initContainers[0].restartPolicy",
            "spec.initContainers[0].restartPolicy",
            id="a-sidecar-now",
        ),
        pytest.param(
            pod(initContainers=[container("i", cpu="1")]),
            pod(initContainers=[container("i", cpu="2")]),
            "spec.initContainers[0].resources.requests[cpu]",
            None,
            id="init-container",
        ),
        pytest.param(
            pod(overhead={"cpu": "1"}),
            pod(overhead={"cpu": "2"}),
            "spec.overhead",
            "spec.overhead",
            id="overhead",
        ),
        pytest.param(
            pod(qos="Burstable"),
            pod(qos="Guaranteed"),
            "status.qosClass",
            "status.qosClass",
            id="qos-class",
        ),
        pytest.param(
            pod(resources={"requests": {"cpu": "1"}}),
            pod(resources={"requests": {"cpu": "2"}}),
            "spec.resources.requests[cpu]",
            None,
            id="pod-level",
        ),
        pytest.param(
            pod(qos="Burstable"),
            pod(resources={}, qos="Burstable"),
            "spec.resources",
            None,
            id="pod-level-empty-is-not-absent",
        ),
        pytest.param(
            pod(qos="Burstable"),
            pod(
                resources={
                    "requests": {"hugepages-2Mi": "2Mi"},
                    "limits": {"hugepages-2Mi": "2Mi"},
                },
                qos="Burstable",
            ),
            "spec.resources",
            "spec.resources.requests[hugepages-2Mi]",
            id="pod-level-huge-pages",
        ),
    ],
)
def test_changes(old: Pod, new: Pod, field: str | None, beyond: str | None) -> None:
    """ALLOC-5, ALLOC-6: only CPU and memory of containers and of the pod are resized."""
    assert changed_field(old, new, GATES) == field
    assert changed_beyond_resize(old, new, GATES) == beyond


@pytest.mark.parametrize(
    ("old", "new", "gates", "beyond"),
    [
        pytest.param(
            pod(initContainers=[container("i", cpu="1")]),
            pod(initContainers=[container("i", cpu="2")]),
            NO_INITS,
            "spec.initContainers[0].resources.requests[cpu]",
            id="ordinary-init-containers",
        ),
        pytest.param(
            pod(initContainers=[container("s", "Always", cpu="1")]),
            pod(initContainers=[container("s", "Always", cpu="2")]),
            NO_INITS,
            None,
            id="sidecars-have-no-gate",
        ),
        pytest.param(
            pod(resources={"requests": {"cpu": "1"}}),
            pod(resources={"requests": {"cpu": "2"}}),
            NO_POD_LEVEL,
            "spec.resources.requests[cpu]",
            id="pod-level",
        ),
        pytest.param(
            pod(qos="Burstable"),
            pod(resources={}, qos="Burstable"),
            NO_POD_LEVEL,
            "spec.resources",
            id="pod-level-section",
        ),
    ],
)
def test_gates(old: Pod, new: Pod, gates: FeatureGates, beyond: str | None) -> None:
    """ALLOC-5, RSZ-4: what a gate that is off leaves out cannot be resized."""
    assert changed_beyond_resize(old, new, gates) == beyond
