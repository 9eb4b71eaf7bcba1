from __future__ import annotations

import errno
from pathlib import Path, PurePosixPath

import pytest
from tests.unit.agent.cgroups.fake_tree import TOP, FakeTree

from numalign.model.cpu_set import CpuSet
from numalign_agent.cgroups.enforcer import CgroupEnforcer
from numalign_agent.cgroups.errors import CgroupError, NoCgroups
from numalign_agent.cgroups.plan import Partition, WantedGroup
from numalign_agent.cgroups.tree import CgroupTree

GROUP = PurePosixPath("/numalign/c1")


@pytest.fixture
def tree(tmp_path: Path) -> FakeTree:
    return FakeTree(tmp_path)


def wanted(cpus: str = "2-3", mems: str = "1", **more: object) -> WantedGroup:
    return WantedGroup(cpus=CpuSet.parse(cpus), mems=CpuSet.parse(mems), **more)  # type: ignore[arg-type]


def test_controllers_come_from_above_and_memory_before_cpus(tree: FakeTree) -> None:
    CgroupEnforcer(tree).apply(GROUP, wanted(hugepages={"2MB": 4 << 20}))
    assert tree.written == [
        ("/", "cgroup.subtree_control", "+cpuset +hugetlb"),
        ("/numalign", "cgroup.subtree_control", "+cpuset +hugetlb"),
        ("/numalign/c1", "cpuset.mems", "1"),
        ("/numalign/c1", "cpuset.cpus", "2-3"),
        ("/numalign/c1", "cpuset.cpus.partition", "member"),
        ("/numalign/c1", "hugetlb.1GB.max", "0"),
        ("/numalign/c1", "hugetlb.1GB.rsvd.max", "0"),
        ("/numalign/c1", "hugetlb.2MB.max", str(4 << 20)),
        ("/numalign/c1", "hugetlb.2MB.rsvd.max", str(4 << 20)),
    ]
    assert tree.read(GROUP, "cpuset.cpus.effective") == "2-3"


def test_a_quota_goes_where_there_can_be_one(tree: FakeTree) -> None:
    tree.write(TOP, "cgroup.subtree_control", "+cpu")
    tree.make(GROUP.parent)
    tree.write(GROUP.parent, "cgroup.subtree_control", "+cpu")
    CgroupEnforcer(tree).apply(GROUP, wanted(unlimited_cpu=True))
    assert (str(GROUP), "cpu.max", "max") in tree.written


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        pytest.param(
            wanted("6-9"),
            "cpuset.cpus.effective is 6-7 after 6-9 was written: 8-9 are not there, "
            "or not of the group above",
            id="CPUs that do not exist",
        ),
        pytest.param(
            wanted("99"),
            "cpuset.cpus.effective is empty after 99 was written: 99 is not there, "
            "or not of the group above",
            id="no CPU that exists",
        ),
        pytest.param(
            wanted("1", "0,4"),
            "cpuset.mems.effective is 0 after 0,4 was written: 4 is not there",
            id="nodes that do not exist",
        ),
    ],
)
def test_what_the_kernel_takes_and_does_not_do_is_an_error(
    tree: FakeTree, asked: WantedGroup, text: str
) -> None:
    with pytest.raises(CgroupError) as caught:
        CgroupEnforcer(tree).apply(GROUP, asked)
    assert f"{tree.path(GROUP)}: {text}" in str(caught.value)
    assert not tree.has(GROUP)


def test_a_group_that_was_there_is_as_before_when_something_is_refused(tree: FakeTree) -> None:
    enforcer = CgroupEnforcer(tree)
    enforcer.apply(GROUP, wanted("0-1", "0"))
    with pytest.raises(CgroupError):
        enforcer.apply(GROUP, wanted("2-42", "1"))
    assert tree.read(GROUP, "cpuset.cpus") == "0-1"
    assert tree.read(GROUP, "cpuset.mems") == "0"


@pytest.mark.parametrize(
    ("file", "number", "text"),
    [
        ("cpuset.cpus", errno.EBUSY, '"2-3" was refused (EBUSY): processes of the group'),
        ("cpuset.cpus", errno.EINVAL, '"2-3" was refused (EINVAL): not a list of CPUs'),
        ("cpuset.cpus", errno.EACCES, '"2-3" was refused (EACCES): they are not among'),
        ("cpuset.mems", errno.ENOSPC, '"1" was refused (ENOSPC): the group has processes'),
        ("cpuset.mems", errno.EROFS, '"1" was refused (EROFS): the cgroup file system is mounted'),
        ("cgroup.subtree_control", errno.EBUSY, '"+cpuset" was refused (EBUSY): it has processes'),
        ("cpuset.cpus", errno.EIO, '"2-3" was refused (EIO): the kernel refuses it'),
    ],
)
def test_a_refusal_names_file_and_value(tree: FakeTree, file: str, number: int, text: str) -> None:
    tree.refused[file] = number
    with pytest.raises(CgroupError, match=r"\A/") as caught:
        CgroupEnforcer(tree).apply(GROUP, wanted())
    assert f"/{file}: {text}" in str(caught.value)
    assert not tree.has(GROUP)


def test_a_controller_that_the_kernel_lacks_is_named(tmp_path: Path) -> None:
    enforcer = CgroupEnforcer(FakeTree(tmp_path, controllers="cpuset memory"))
    with pytest.raises(CgroupError, match="controller hugetlb is not available"):
        enforcer.apply(GROUP, wanted(hugepages={"2MB": 1}))
    enforcer.apply(GROUP, wanted(hugepages={}))


def test_a_partition_that_came_to_nothing_is_an_error(tree: FakeTree) -> None:
    class Invalid(FakeTree):
        def read(self, group: PurePosixPath, file: str) -> str:
            text = super().read(group, file)
            return (
                f"{text} invalid (Parent is not a partition root)" if text == "isolated" else text
            )

    with pytest.raises(CgroupError, match=r"isolated invalid \(Parent is not a partition root\)"):
        CgroupEnforcer(Invalid(tree.path(TOP))).apply(GROUP, wanted(partition=Partition.ISOLATED))


def test_where_there_are_no_groups_that_is_said(tmp_path: Path) -> None:
    with pytest.raises(NoCgroups, match="is no cgroup version 2 file system"):
        CgroupEnforcer(CgroupTree(tmp_path)).apply(GROUP, wanted())


def test_a_real_refusal_of_the_file_system_is_told(tmp_path: Path) -> None:
    tree = CgroupTree(tmp_path)
    with pytest.raises(CgroupError, match=r'cpuset.cpus: "1" was refused \(ENOENT\)'):
        tree.write(TOP, "cpuset.cpus", "1")
    with pytest.raises(CgroupError, match=r"cannot make the group \(ENOENT\)"):
        tree.make(PurePosixPath("/a/b"))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    with pytest.raises(CgroupError, match=r"cannot remove the group \(ENOTEMPTY\)"):
        tree.remove(PurePosixPath("/full"))
    tree.remove(PurePosixPath("/gone"))
