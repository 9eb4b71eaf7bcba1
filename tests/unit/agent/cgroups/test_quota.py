from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest
from tests.unit.agent.cgroups.fake_tree import TOP, FakeTree

from numalign_agent.cgroups.paths import pod_path, relative_path
from numalign_agent.cgroups.quota import groups_without_quota, lift_quotas
from numalign_agent.cgroups.tree import CgroupTree

POD = "kubepods/podab-1"
BURSTABLE = "kubepods/burstable/podab-1"
CONTAINER = f"{POD}/c1"
SLICE = "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podab_1.slice"


@pytest.mark.parametrize(
    ("written", "container", "pod"),
    [
        ("/kubepods/podab-1/c1", CONTAINER, POD),
        (f"/{BURSTABLE}/c1", f"{BURSTABLE}/c1", BURSTABLE),
        (
            "kubepods-burstable-podab_1.slice:cri-containerd:c1",
            f"{SLICE}/cri-containerd-c1.scope",
            SLICE,
        ),
        (
            "kubepods-podab_1.slice:crio:c1",
            "kubepods.slice/kubepods-podab_1.slice/crio-c1.scope",
            "kubepods.slice/kubepods-podab_1.slice",
        ),
        ("/kubepods/podab-1/crio-c1/container", "kubepods/podab-1/crio-c1/container", POD),
        ("/docker/c1", "docker/c1", ""),
        ("", "", ""),
    ],
)
def test_a_container_and_its_pod_are_found_in_both_layouts(
    written: str, container: str, pod: str
) -> None:
    assert relative_path(written) == container
    assert pod_path(written) == pod


def test_pods_come_before_containers_and_once() -> None:
    groups = groups_without_quota(["/kubepods/podx/a", "/kubepods/podx/b", ""])
    assert [str(g) for g in groups] == ["/kubepods/podx", "/kubepods/podx/a", "/kubepods/podx/b"]


@pytest.fixture
def tree(tmp_path: Path) -> FakeTree:
    tree = FakeTree(tmp_path)
    tree.write(TOP, "cgroup.subtree_control", "+cpu")
    for group in map(PurePosixPath, ("/kubepods", f"/{POD}", f"/{CONTAINER}")):
        tree.make(group)
        tree.write(group, "cgroup.subtree_control", "+cpu")
    return tree


def test_quotas_are_taken_off_pod_and_container(tree: FakeTree) -> None:
    assert lift_quotas(tree, [CONTAINER]).lifted == ()
    tree.path(PurePosixPath("/", POD), "cpu.max").write_text("200000 100000\n")
    tree.path(PurePosixPath("/", CONTAINER), "cpu.max").write_text("100000 100000\n")
    report = lift_quotas(tree, [CONTAINER, "/kubepods/podgone/c"])
    assert report.lifted == ((f"/{POD}", "200000 100000"), (f"/{CONTAINER}", "100000 100000"))
    assert report.failures == ()
    assert lift_quotas(tree, [CONTAINER]).lifted == ()


def test_what_cannot_be_taken_off_is_told(tree: FakeTree) -> None:
    tree.path(PurePosixPath("/", POD), "cpu.max").write_text("200000 100000\n")
    tree.refused["cpu.max"] = 30
    (failure,) = lift_quotas(tree, [CONTAINER]).failures
    assert f'/{POD}/cpu.max: "max" was refused (EROFS)' in failure


def test_without_version_2_it_is_said_that_nothing_is_looked_at(tmp_path: Path) -> None:
    report = lift_quotas(CgroupTree(tmp_path / "none"), [CONTAINER])
    assert report.unavailable.endswith("is no cgroup version 2 file system")
