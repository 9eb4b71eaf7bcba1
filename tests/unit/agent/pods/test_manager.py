"""Wanted pods and mirror pods (MIR-2, MIR-4), and who is active (ADM-8)."""

from __future__ import annotations

import pytest
from tests.unit.agent.made import container, pod

from numalign_agent.pod import CONFIG_MIRROR, AgentPod
from numalign_agent.pods.active import is_active
from numalign_agent.pods.manager import PodManager
from numalign_agent.pods.qos import qos_of
from numalign_agent.workers import work as w
from numalign_agent.workers.work import Kill, PodWork, Update, UpdateKind


def mirror(name: str) -> AgentPod:
    of = pod(name).annotated(**{CONFIG_MIRROR: "hash"})
    return of.replacing("metadata", uid=f"mirror-{name}")


def test_pairing() -> None:
    pods = PodManager()
    static = pod("web", source="file")
    pods.put(mirror("web"))
    assert pods.static_of(mirror("web")) is None  # trap 34: the mirror first
    assert pods.orphaned_mirrors() == [mirror("web")]

    pods.put(static)
    assert pods.static_of(mirror("web")) == static
    assert pods.mirror_of(static) == mirror("web")
    assert pods.mirror_of(pod("web")) is None  # a pod of the API server has none
    assert list(pods.pods) == ["uid-web"]
    assert pods.orphaned_mirrors() == []

    pods.remove(static)
    pods.remove(static)
    assert pods.orphaned_mirrors() == [mirror("web")]
    pods.remove(mirror("web"))
    assert pods.mirrors == {}


def test_a_new_pod_of_the_same_name_keeps_the_name() -> None:
    pods = PodManager()
    old = pod("web", source="file")
    new = old.replacing("metadata", uid="uid-new")
    pods.put(old)
    pods.put(new)
    pods.remove(old)

    assert pods.static_of(mirror("web")) == new


def ending(of: AgentPod) -> PodWork:
    return w.first_work(Update(UpdateKind.KILL, of, kill=Kill()), 1.0, runtime_idle=False)


OVER = pod("a", status={"phase": "Failed"})


@pytest.mark.parametrize(
    ("of", "work", "ended", "active"),
    [
        pytest.param(pod("a"), None, False, True, id="no worker yet"),
        pytest.param(pod("a"), None, True, False, id="rejected a moment ago"),
        pytest.param(OVER, None, False, False, id="over, says the source"),
        pytest.param(OVER, ending(OVER), False, True, id="still stopping containers, trap 32"),
        pytest.param(pod("a"), ending(pod("a")), True, True, id="failed, still stopping"),
        pytest.param(pod("a"), w.stopped(ending(pod("a"))), False, False, id="stopped"),
    ],
)
def test_active(of: AgentPod, work: PodWork | None, ended: bool, active: bool) -> None:
    assert is_active(of, work, ended=ended) is active


AMOUNTS = {"cpu": "1", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("of", "qos"),
    [
        (pod("a"), "BestEffort"),
        (pod("a", container(resources={"limits": AMOUNTS, "requests": AMOUNTS})), "Guaranteed"),
        (pod("a", container(resources={"requests": {"cpu": "1"}})), "Burstable"),
        (pod("a", status={"qosClass": "Guaranteed"}), "Guaranteed"),
        (pod("a", container(resources={"requests": {"cpu": "x"}})), ""),
    ],
)
def test_qos(of: AgentPod, qos: str) -> None:
    assert qos_of(of) == qos
