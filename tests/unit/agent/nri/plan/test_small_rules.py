"""Tables for what is decided from one or two values."""

from __future__ import annotations

import stat

import pytest

from numalign.kube.nri.v1alpha1 import api_pb2 as nri
from numalign.model.cpu_set import CpuSet
from numalign_agent.nri.plan.abilities import (
    WANTED_EVENTS,
    event_mask,
    hands_on_cdi,
    registers_safely,
    version_of,
)
from numalign_agent.nri.plan.drift import Actual, Drift, drift_of
from numalign_agent.nri.plan.edits import device_mode, device_type, mount_options
from numalign_agent.nri.plan.patience import patience
from numalign_agent.nri.plan.pinning import Pinning
from numalign_agent.nri.plan.refusals import Consequence, OnReject, consequence, exemption
from numalign_agent.pod import AgentPod


@pytest.mark.parametrize(
    ("wanted", "actual", "drift"),
    [
        pytest.param("2 0", "2 0", Drift.NONE, id="there"),
        pytest.param("2 0", "2-3 0", Drift.UNPINNED, id="more-cpus"),
        pytest.param("2 0", "3 0", Drift.UNPINNED, id="other-cpus"),
        pytest.param("2 0", "2 0-1", Drift.UNPINNED, id="more-nodes"),
        pytest.param("0-3 0", "0-1 0", Drift.NARROWER, id="fewer-cpus"),
        pytest.param("0-3 0-1", "0-1 2", Drift.UNPINNED, id="fewer-cpus-other-nodes"),
        pytest.param("2 -", "2 0-1", Drift.NONE, id="nodes-left-alone"),
        pytest.param("- 0", "0-3 0", Drift.NONE, id="cpus-left-alone"),
    ],
)
def test_drift(wanted: str, actual: str, drift: Drift) -> None:
    want, have = (
        [CpuSet.parse(part.strip("-")) for part in text.split(" ")] for text in (wanted, actual)
    )

    assert drift_of(Pinning(want[0], want[1]), Actual(have[0], have[1])) is drift


def pod(
    annotations: dict[str, str] | None = None,
    labels: dict[str, str] | None = None,
    namespace: str = "default",
    priority: int | None = None,
) -> AgentPod:
    spec = {} if priority is None else {"priority": priority}
    metadata = {"namespace": namespace, "annotations": annotations, "labels": labels}
    return AgentPod({"metadata": metadata, "spec": spec})


@pytest.mark.parametrize(
    ("found", "why"),
    [
        pytest.param(pod(), "", id="ordinary"),
        pytest.param(pod({"kubernetes.io/config.source": "api"}), "", id="from-the-api"),
        pytest.param(pod({"kubernetes.io/config.source": "file"}), "it is a static pod", id="file"),
        pytest.param(pod({"kubernetes.io/config.source": "http"}), "it is a static pod", id="http"),
        pytest.param(pod({"kubernetes.io/config.mirror": "x"}), "it is a mirror pod", id="mirror"),
        pytest.param(pod(priority=2_000_000_000), "it is critical", id="critical"),
        pytest.param(pod(priority=1_999_999_999), "", id="just-not-critical"),
        pytest.param(
            pod(labels={"app.kubernetes.io/part-of": "numalign"}), "it is numalign's own", id="own"
        ),
        pytest.param(
            pod(labels={"app.kubernetes.io/name": "numalign"}),
            "it is numalign's own",
            id="own-name",
        ),
        pytest.param(pod(labels={"app.kubernetes.io/name": "other"}), "", id="other-name"),
        pytest.param(
            pod(namespace="kube-system"), 'namespace "kube-system" is exempt', id="namespace"
        ),
    ],
)
def test_who_is_never_kept_from_starting(found: AgentPod, why: str) -> None:
    assert exemption(found, {"kube-system"}) == why


@pytest.mark.parametrize(
    ("on_reject", "situation", "outcome"),
    [
        pytest.param(OnReject.WAIT, "", Consequence.VETO, id="wait"),
        pytest.param(OnReject.EVICT, "", Consequence.EVICT, id="evict"),
        pytest.param(OnReject.SHARED, "", Consequence.SHARED, id="shared"),
        pytest.param(OnReject.WAIT, "exempt", Consequence.SHARED, id="wait-exempt"),
        pytest.param(OnReject.EVICT, "exempt", Consequence.SHARED, id="evict-exempt"),
        pytest.param(OnReject.EVICT, "running", Consequence.SHARED, id="evict-running"),
        pytest.param(OnReject.WAIT, "estimated", Consequence.SHARED, id="wait-estimated"),
        pytest.param(OnReject.WAIT, "deferred", Consequence.VETO, id="wait-deferred"),
        pytest.param(OnReject.EVICT, "deferred", Consequence.VETO, id="evict-deferred"),
    ],
)
def test_what_a_refusal_leads_to(on_reject: OnReject, situation: str, outcome: Consequence) -> None:
    is_so = {name: name == situation for name in ("exempt", "running", "deferred", "estimated")}

    assert consequence(on_reject, **is_so) is outcome


@pytest.mark.parametrize(
    ("seconds", "hung", "spec", "admission"),
    [
        pytest.param(0.0, False, 0.4, 1.2, id="not-told"),
        pytest.param(2.0, False, 0.4, 1.2, id="usual"),
        pytest.param(10.0, False, 2.0, 6.0, id="more"),
        pytest.param(2.0, True, 0.4, 0.2, id="after-it-hung"),
    ],
)
def test_patience(seconds: float, hung: bool, spec: float, admission: float) -> None:
    found = patience(seconds, admission_hung=hung)

    assert [found.spec, found.admission] == pytest.approx([spec, admission])


@pytest.mark.parametrize(
    ("runtime", "version", "cdi", "safe"),
    [
        pytest.param("containerd", "1.7.24~ds1", False, True, id="trixie"),
        pytest.param("containerd", "v1.7.15", False, False, id="locks-up"),
        pytest.param("containerd", "v2.1.9", True, True, id="2.1"),
        pytest.param("containerd", "v2.0.5", False, True, id="2.0"),
        pytest.param("cri-o", "1.33.4", False, True, id="cri-o"),
        pytest.param("cri-o", "1.34.0", True, True, id="cri-o-1.34"),
        pytest.param("containerd", "main", True, True, id="unknown-version"),
        pytest.param("other", "0.1", True, True, id="unknown-runtime"),
    ],
)
def test_abilities(runtime: str, version: str, cdi: bool, safe: bool) -> None:
    assert (hands_on_cdi(runtime, version), registers_safely(runtime, version)) == (cdi, safe)


def test_versions() -> None:
    texts = ("v2.1.9", "1.7", "1.7.24~ds1", "main", "")

    assert [version_of(text) for text in texts] == [(2, 1, 9), (1, 7, 0), (1, 7, 24), None, None]


def test_the_oldest_runtime_knows_every_event() -> None:
    """Bits above 11 came later, and a runtime refuses a plugin that asks for what it lacks."""
    assert max(WANTED_EVENTS) <= nri.REMOVE_CONTAINER
    assert event_mask(nri.RUN_POD_SANDBOX, nri.REMOVE_CONTAINER) == 1 | 1 << 10


@pytest.mark.parametrize(
    ("mode", "permissions", "kind", "granted"),
    [
        pytest.param(stat.S_IFCHR | 0o660, "rwm", "c", 0o660, id="all"),
        pytest.param(stat.S_IFCHR | 0o666, "r", "c", 0o444, id="read"),
        pytest.param(stat.S_IFBLK | 0o660, "w", "b", 0o220, id="write"),
        pytest.param(stat.S_IFREG | 0o644, "rw", None, 0o644, id="no-device"),
    ],
)
def test_devices(mode: int, permissions: str, kind: str | None, granted: int) -> None:
    assert (device_type(mode), device_mode(mode, permissions)) == (kind, granted)


def test_mounts() -> None:
    assert mount_options(read_only=True) == ("rbind", "rprivate", "ro")
    assert mount_options(read_only=False)[-1] == "rw"
