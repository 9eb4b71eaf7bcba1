from __future__ import annotations

import errno
import os
import subprocess
from pathlib import Path, PurePosixPath

import pytest
from tests.unit.agent.cgroups.fake_tree import FakeTree

from numalign.document.problems import DocumentError, Problems
from numalign.document.section import Section
from numalign.v1 import types_pb2 as pb
from numalign_agent.cgroups.choice import choose
from numalign_agent.cgroups.hugepages import limits_of
from numalign_agent.cgroups.placer import CgroupPlacer, wanted_group
from numalign_agent.cgroups.plan import Partition
from numalign_agent.cgroups.settings import CgroupSettings, read_cgroups
from numalign_agent.config.enforce import Enforce
from numalign_agent.pod import AgentPod
from numalign_agent.runners.affinity import AffinityPlacer
from numalign_agent.runners.placer import CannotPlace
from numalign_agent.runners.port import Placement

POD = AgentPod({"metadata": {"uid": "u"}})


def placer_over(tree: FakeTree) -> CgroupPlacer:
    placer = CgroupPlacer(CgroupSettings(root=tree.path(PurePosixPath("/"))), tree)
    placer.check()
    return placer


def test_a_container_has_a_group_from_its_start_to_its_end(tmp_path: Path) -> None:
    tree = FakeTree(tmp_path)
    placer = placer_over(tree)
    place = placer.place(POD, "c", "id1", Placement(cpus="1-2", mems="0", hugepages={}))
    group = PurePosixPath("/numalign/id1")
    assert place.cgroup_procs == (tmp_path / "numalign/id1/cgroup.procs",)
    assert tree.read(group, "cpuset.cpus") == "1-2"
    assert tree.read(group, "hugetlb.2MB.max") == "0"
    placer.update("id1", 1, Placement(cpus="3"))
    assert tree.read(group, "cpuset.cpus") == "3"
    assert tree.read(group, "cpuset.mems") == "0"
    placer.remove("id1")
    assert not tree.has(group)
    assert not placer.kill("id1")
    placer.remove("id1")


IN_PLACE = Placement(cpus="1-2", exclusive_cpus=True, mems="0", hugepages={})


@pytest.mark.parametrize(
    ("file", "value", "found"),
    [
        pytest.param(
            "cpuset.cpus", "0-3", "cpuset.cpus.effective is 0-3 after 1-2 was written", id="cpus"
        ),
        pytest.param(
            "cpuset.mems",
            "1",
            "cpuset.mems.effective is 1 after 0 was written: 0 is not there, or not of the group "
            "above",
            id="mems",
        ),
        pytest.param("cpu.max", "50000 100000", "cpu.max is 50000 100000 after max", id="quota"),
        pytest.param("hugetlb.2MB.max", "max", "hugetlb.2MB.max is max after 0", id="huge pages"),
    ],
)
def test_what_somebody_else_has_changed_is_put_back(
    tmp_path: Path, file: str, value: str, found: str
) -> None:
    tree = FakeTree(tmp_path)
    placer, group, own = placer_over(tree), PurePosixPath("/numalign/id1"), os.getpid()
    for above in reversed(group.parents):
        tree.write(above, "cgroup.subtree_control", "+cpu")
    placer.place(POD, "c", "id1", IN_PLACE)
    placer.put_back("id1", own, IN_PLACE)
    tree.write(group, file, value)

    assert placer.put_back("id1", own, IN_PLACE) == found
    assert placer.put_back("id1", own, IN_PLACE) == ""


def test_a_process_that_was_taken_out_of_its_group_is_fetched_back(tmp_path: Path) -> None:
    tree = FakeTree(tmp_path)
    placer, own = placer_over(tree), os.getpid()
    placer.place(POD, "c", "id1", IN_PLACE)

    assert placer.put_back("id1", own, IN_PLACE) == f"process {own} was in another group"
    assert tree.read(PurePosixPath("/numalign/id1"), "cgroup.procs") == str(own)


def test_a_group_that_was_removed_is_made_again(tmp_path: Path) -> None:
    tree = FakeTree(tmp_path)
    placer, group, own = placer_over(tree), PurePosixPath("/numalign/id1"), os.getpid()
    placer.place(POD, "c", "id1", IN_PLACE)
    tree.remove(group)

    assert placer.put_back("id1", own, IN_PLACE).startswith(f"{tmp_path / 'numalign/id1'} is gone")
    assert tree.read(group, "cpuset.cpus") == "1-2"


def test_what_cannot_be_put_back_says_why(tmp_path: Path) -> None:
    tree = FakeTree(tmp_path)
    placer, group = placer_over(tree), PurePosixPath("/numalign/id1")
    placer.place(POD, "c", "id1", IN_PLACE)
    tree.write(group, "cpuset.cpus", "0-3")
    tree.refused["cpuset.cpus"] = errno.EBUSY

    with pytest.raises(CannotPlace, match=r'container id1: .*cpuset.cpus: "1-2" was refused'):
        placer.put_back("id1", os.getpid(), IN_PLACE)


def test_the_group_of_a_process_that_has_ended_is_left_alone(tmp_path: Path) -> None:
    tree = FakeTree(tmp_path)
    placer = placer_over(tree)
    with subprocess.Popen(["true"]) as ended:
        ended.wait()

    assert placer.put_back("id1", ended.pid, IN_PLACE) == ""
    assert not tree.has(PurePosixPath("/numalign/id1"))


def test_cpus_of_a_partition_are_given_back_before_the_group_goes(tmp_path: Path) -> None:
    tree = FakeTree(tmp_path)
    settings = CgroupSettings(root=tmp_path, partition=Partition.ISOLATED)
    placer = CgroupPlacer(settings, tree)
    placer.place(POD, "c", "id1", Placement(cpus="1", exclusive_cpus=True))
    assert tree.written[-1] == ("/numalign/id1", "cpuset.cpus.partition", "isolated")
    placer.remove("id1")
    assert tree.written[-1] == ("/numalign/id1", "cpuset.cpus.partition", "member")
    assert not tree.has(PurePosixPath("/numalign/id1"))


def test_what_is_refused_names_the_container(tmp_path: Path) -> None:
    placer = placer_over(FakeTree(tmp_path))
    with pytest.raises(CannotPlace, match=r"container c: .*cpuset.cpus.effective is empty"):
        placer.place(POD, "c", "id1", Placement(cpus="64"))


@pytest.mark.parametrize(
    ("exclusive", "partition"), [(True, Partition.ISOLATED), (False, Partition.MEMBER)]
)
def test_only_exclusive_cpus_make_a_partition(exclusive: bool, partition: Partition) -> None:
    wanted = wanted_group(Placement(cpus="1", exclusive_cpus=exclusive), Partition.ISOLATED)
    assert wanted.partition is partition
    assert wanted.unlimited_cpu is exclusive


def test_huge_pages_are_limited_to_what_is_held() -> None:
    blocks = [
        pb.MemoryBlock(resource="memory", size=1),
        pb.MemoryBlock(resource="hugepages-2Mi", size=4, numa_nodes=[0]),
        pb.MemoryBlock(resource="hugepages-2Mi", size=6, numa_nodes=[1]),
        pb.MemoryBlock(resource="hugepages-1Gi", size=7),
    ]
    assert limits_of(blocks) == {"2MB": 10, "1GB": 7}


def test_the_better_way_is_chosen_where_it_is_there(tmp_path: Path) -> None:
    nothing = CgroupSettings(root=tmp_path / "none")
    FakeTree(tmp_path)
    (tmp_path / "numalign").mkdir()
    for name in ("cgroup.controllers", "cgroup.subtree_control"):
        (tmp_path / "numalign" / name).write_text("cpuset\n")
    (tmp_path / "cgroup.subtree_control").write_text("cpuset hugetlb\n")
    assert choose(Enforce.AUTO, CgroupSettings(root=tmp_path)).enforce is Enforce.CGROUP
    chosen = choose(Enforce.AUTO, nothing)
    assert isinstance(chosen.placer, AffinityPlacer)
    assert chosen.lacking == f"{tmp_path / 'none'} is no cgroup version 2 file system"
    with pytest.raises(CannotPlace, match="no cgroup version 2"):
        choose(Enforce.CGROUP, nothing)


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ({"parent": "numalign"}, "parent: must be a group such as /numalign, not"),
        ({"parent": "/a/../b"}, "parent: must be a group such as /numalign, not"),
        ({"root": "sys"}, "root: must be an absolute path, not"),
        ({"partition": "own"}, "partition: "),
        ({"parnet": "/a"}, "parnet: "),
    ],
)
def test_a_wrong_setting_is_named(document: dict[str, str], problem: str) -> None:
    problems = Problems()
    read_cgroups(Section(document, "cgroups", problems))
    with pytest.raises(DocumentError) as caught:
        problems.refuse()
    assert f"cgroups.{problem}" in str(caught.value)
