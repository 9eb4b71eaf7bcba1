"""What is read from the host: cgroups, processes, and who else hands out CPUs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from numalign.config.settings import SecondOwner
from numalign.errors import StartError
from numalign.model.cpu_set import CpuSet
from numalign.process.second_owner.rules import KubeletPolicy, NodeFacts, Resource
from numalign.telemetry.metrics import Metrics
from numalign_agent.nri.cgroup_readback import CgroupReadback
from numalign_agent.nri.metrics import NRI
from numalign_agent.nri.plan.drift import Actual
from numalign_agent.nri.second_owner import SecondOwnerCheck
from numalign_agent.nri.settings import NriSettings
from numalign_agent.nri.start_times import StartTimes


@pytest.mark.parametrize(
    ("directory", "cpus", "mems"),
    [
        pytest.param("k/c", "cpuset.cpus.effective", "cpuset.mems.effective", id="v2"),
        pytest.param("cpuset/k/c", "cpuset.effective_cpus", "cpuset.effective_mems", id="v1"),
    ],
)
def test_what_the_kernel_says(tmp_path: Path, directory: str, cpus: str, mems: str) -> None:
    below = tmp_path / directory
    below.mkdir(parents=True)
    (below / cpus).write_text("0-2\n")
    (below / mems).write_text("0\n")
    (tmp_path / "cgroup.controllers").touch()
    readback = CgroupReadback(tmp_path)

    assert readback.read("/k/c") == Actual(CpuSet.parse("0-2"), CpuSet.parse("0"))
    assert readback.read("/k/other") is None
    assert readback.read("") is None
    assert readback.can_read()


def test_no_cgroups(tmp_path: Path) -> None:
    assert not CgroupReadback(tmp_path).can_read()
    assert CgroupReadback(tmp_path).read("/k") is None


def test_start_times(tmp_path: Path) -> None:
    ours = StartTimes(Path("/proc"))
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "stat").write_text("7 (a) b) S " + " ".join(["0"] * 18) + " 500 0\n")
    (tmp_path / "8").mkdir()
    (tmp_path / "8" / "stat").write_text("nonsense")
    made_up = StartTimes(tmp_path)

    assert ours.of(os.getpid()) >= ours.of(os.getppid()) > 0
    assert made_up.of(7) == 500 * 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    assert [made_up.of(pid) for pid in (0, 8, 9)] == [0, 0, 0]


STATIC = NodeFacts(kubelet=(KubeletPolicy(Resource.CPU, "static", "/config.yaml"),))


def check(facts: NodeFacts, **settings: object) -> tuple[SecondOwnerCheck, Metrics]:
    metrics = Metrics(NRI, enabled=True)
    found = NriSettings(**settings)  # type: ignore[arg-type]
    return SecondOwnerCheck(found, metrics, lambda _: facts), metrics


async def test_a_kubelet_with_a_static_policy_is_refused() -> None:
    found, _ = check(STATIC)
    with pytest.raises(StartError, match="the kubelet's CPU Manager has policy static") as caught:
        await found.refuse_start()

    assert "set numalign.secondOwner to tolerate" in str(caught.value)


async def test_it_may_be_tolerated() -> None:
    found, metrics = check(STATIC, second_owner=SecondOwner.TOLERATE)
    await found.refuse_start()

    assert "second_owners 1.0" in metrics.text()


async def test_who_hands_out_what_the_services_do_not_is_no_second_owner() -> None:
    found, metrics = check(STATIC, policies={Resource.CPU: "none", Resource.MEMORY: "Static"})
    await found.refuse_start()

    assert "second_owners 0.0" in metrics.text()
