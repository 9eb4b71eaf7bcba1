"""Our services on a real kernel with four NUMA nodes: one boot, and what was seen in it."""

from __future__ import annotations

import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.required import need
from tests.e2e.vm.machine import FIXTURE, HUGE_PAGES, run_inside

from numalign.machine.discover import discover
from numalign.machine.schema import document_of_machine

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

INSIDE = Path(__file__).with_name("inside.py")
NODES = 4


@pytest.fixture(scope="module")
def seen() -> Mapping[str, Any]:
    need(Path("/etc/apt").is_dir(), "no Debian machine")
    report = run_inside(INSIDE)
    failed = {name: step["failed"] for name, step in report.items() if _has_failed(step)}
    assert not failed, failed
    return report


def _has_failed(step: object) -> bool:
    return isinstance(step, dict) and "failed" in step


def test_the_machine_is_discovered_as_its_shape_is(seen: Mapping[str, Any], tmp_path: Path) -> None:
    with tarfile.open(FIXTURE.with_suffix(".tar.gz")) as archive:
        archive.extractall(tmp_path, filter="data")
    expected: Any = document_of_machine(discover(tmp_path).machine)

    def shape(document: Any) -> list[dict[str, Any]]:
        return [
            {k: v for k, v in node.items() if k not in {"memory_bytes", "hugepages"}}
            for node in document["numa_nodes"]
        ]

    found = seen["discovery"]
    assert shape(found) == shape(expected)
    sizes = [
        (mine["memory_bytes"], its["memory_bytes"])
        for mine, its in zip(found["numa_nodes"], expected["numa_nodes"], strict=True)
    ]
    assert all(1.8 < mine / its < 2.3 for mine, its in sizes), sizes
    assert [
        [page["count"] for page in node["hugepages"] if page["page_size_kib"] == 2048]
        for node in found["numa_nodes"]
    ] == [[4], [16], [16], [20]]


def test_huge_pages_are_set_for_each_node(seen: Mapping[str, Any]) -> None:
    assert seen["huge pages at first"] == [HUGE_PAGES // NODES] * NODES
    assert seen["huge pages"] == [4, 16, 16, 20]


def test_a_group_is_as_it_was_set_and_processes_follow(seen: Mapping[str, Any]) -> None:
    groups = seen["groups"]
    assert groups["files"] == {
        "cpuset.cpus": "4-5,12-13",
        "cpuset.cpus.effective": "4-5,12-13",
        "cpuset.mems.effective": "1,3",
        "hugetlb.2MB.max": str(8 << 20),
    }
    assert groups["joined"] == ["4-5,12-13", "1,3"]
    assert groups["moved"] == ["0-1", "0"]
    assert groups["taken"] == ""
    assert "cpuset.cpus.effective is 0-1 after 0-1,15 was written: 15 is not" in groups["refused"]
    assert groups["after a refusal"] == ["0-1", "0"]
    assert "cannot remove the group (EBUSY)" in groups["removed too early"]
    assert groups["killed"] is True
    assert groups["left"] is False


@pytest.mark.parametrize(
    ("what", "text"),
    [
        ("not of the group above", "cpuset.cpus.effective is 3 after 3-4 was written: 4 is not"),
        ("no such CPU", 'cpuset.cpus: "3,99" was refused (ERANGE): a number is beyond'),
        ("no such node", "cpuset.mems: "),
        ("far beyond", 'cpuset.cpus: "99999999" was refused (ERANGE): a number is beyond'),
        ("no list", 'cpuset.cpus: "x" was refused (EINVAL): not a list of CPUs'),
        ("no file", 'cpuset.none: "1" was refused (ENOENT): no such file'),
        ("processes", 'cgroup.subtree_control: "+cpuset +hugetlb" was refused (EBUSY)'),
    ],
)
def test_what_the_kernel_refuses_is_told(seen: Mapping[str, Any], what: str, text: str) -> None:
    assert text in seen["refusals"][what]
    assert seen["refusals"]["left"] is False


def test_a_partition_takes_its_cpus_from_everybody_else(seen: Mapping[str, Any]) -> None:
    partitions = seen["partitions"]
    assert partitions["root"] == "0-7,10-15"
    assert partitions["given back"] == "0-15"
    assert "cpuset.cpus.partition is isolated invalid" in partitions["too deep"]


def test_quotas_are_lifted_from_pod_and_container(seen: Mapping[str, Any]) -> None:
    limit = "50000 100000"
    assert seen["quotas"] == {
        "lifted": [["/kubepods/podx", limit], ["/kubepods/podx/c", limit]],
        "again": [],
        "now": ["max 100000", "max 100000"],
    }


def test_a_container_of_the_agent_is_in_a_group_of_its_own(seen: Mapping[str, Any]) -> None:
    runner = seen["process runner"]
    assert runner["started"] == [["6-7", "1"]] * 2
    assert runner["huge"] == "0"
    assert runner["moved"] == [["9", "2"]] * 2
    assert runner["changed"] == [
        (
            "cpuset.cpus.effective is 0-3 after 9 was written: 9 is not there, or not of the group "
            "above"
        ),
        [["9", "2"]] * 2,
    ]
    assert runner["taken out"] == ["process PID was in another group", [["9", "2"]] * 2]
    assert runner["left"] is False
    assert "container c: " in runner["refused"]
    assert 'cpuset.cpus: "40" was refused (ERANGE)' in runner["refused"]


@pytest.mark.parametrize("name", ["first", "second"])
def test_a_command_is_where_admission_said_and_so_is_its_memory(
    seen: Mapping[str, Any], name: str
) -> None:
    run = seen["runs"][name]
    cpus, memory = run["granted"]["cpus"], run["granted"]["memory"]
    (node,) = memory["memory"]
    assert memory == {"memory": [node], "hugepages-2Mi": [node]}
    assert run["cpus_allowed_list"] == cpus
    assert len(run["affinity"]) == 3
    assert {cpu // 4 for cpu in run["affinity"]} == {node}
    assert run["mems_allowed_list"] == str(node)
    assert run["cgroup"].startswith("0::/numalign/run-")
    assert run["plain"] == {str(node): 2048}
    assert run["huge"] == {"pages": 4, "then": "Cannot allocate memory", "nodes": {str(node): 4}}


def test_commands_are_apart_and_leave_nothing(seen: Mapping[str, Any]) -> None:
    runs = seen["runs"]
    assert set(runs["first"]["affinity"]).isdisjoint(runs["second"]["affinity"])
    assert runs["ended with"] == 3
    assert runs["groups left"] == []


def test_without_groups_numactl_binds_memory(seen: Mapping[str, Any]) -> None:
    run = seen["by affinity"]
    nodes = {cpu // 4 for cpu in run["affinity"]}
    assert len(run["affinity"]) == 2
    assert len(nodes) == 1
    assert run["plain"] == {str(*nodes): 2048}
    assert run["cgroup"] == "0::/"
