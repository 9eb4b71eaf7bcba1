"""Discovery from captured sysfs trees, and from trees made up to be odd."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from numalign.errors import ConfigError
from numalign.machine.discover import Discovered, discover
from numalign.model.cpu_set import CpuSet
from numalign.model.machine import HugePages, NumaNode

FIXTURES = Path(__file__).parents[2] / "fixtures" / "sysfs"
NAMES = sorted(path.stem for path in FIXTURES.glob("*.json"))

Unpack = Callable[[str], Path]


def _cpus_of(node: NumaNode) -> CpuSet:
    return CpuSet.of(thread for core in node.cores for thread in core.threads)


def _write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return root


def _cpu(cpu: int, core: int, socket: int, siblings: str) -> dict[str, str]:
    topology = f"sys/devices/system/cpu/cpu{cpu}/topology"
    return {
        f"{topology}/core_id": str(core),
        f"{topology}/physical_package_id": str(socket),
        f"{topology}/thread_siblings_list": siblings,
    }


def _cache(cpu: int, level: int, sharing: str, cache_id: int | None) -> dict[str, str]:
    cache = f"sys/devices/system/cpu/cpu{cpu}/cache/index{level}"
    files = {f"{cache}/level": str(level), f"{cache}/shared_cpu_list": sharing}
    return files if cache_id is None else files | {f"{cache}/id": str(cache_id)}


def _node(node: int, cpus: str, memory_kib: int = 1024) -> dict[str, str]:
    directory = f"sys/devices/system/node/node{node}"
    return {
        f"{directory}/cpulist": cpus,
        f"{directory}/meminfo": f"Node {node} MemTotal: {memory_kib} kB",
        f"{directory}/distance": "10",
    }


def test_every_captured_tree_is_described() -> None:
    assert len(NAMES) == 16
    assert sorted(path.name for path in FIXTURES.glob("*.tar.gz")) == [
        f"{name}.tar.gz" for name in NAMES
    ]


@pytest.mark.parametrize("name", NAMES)
def test_captured_tree(name: str, unpacked: Unpack) -> None:
    summary: dict[str, Any] = json.loads((FIXTURES / f"{name}.json").read_text())["summary"]
    found = discover(unpacked(name))
    nodes = found.machine.numa_nodes

    assert CpuSet.of(found.machine.node_ids()) == CpuSet.parse(summary["nodes_online"])
    assert {f"node{node.id}": _cpus_of(node) for node in nodes} == {
        key: CpuSet.parse(value["cpulist"]) for key, value in summary["nodes"].items()
    }
    assert {f"node{node.id}": list(node.distances or ()) for node in nodes} == {
        key: value["distance"] for key, value in summary["nodes"].items()
    }
    assert CpuSet.of(node.id for node in nodes if node.cores) == CpuSet.parse(summary["has_cpu"])
    assert CpuSet.of(node.id for node in nodes if node.memory_bytes) == CpuSet.parse(
        summary["has_memory"]
    )
    assert found.machine.cpu_count() == len(CpuSet.parse(summary["cpus_online"]))
    assert found.isolated == CpuSet.parse(summary["cpus_isolated"])
    present = CpuSet.parse(summary["cpus_present"])
    assert found.offline == CpuSet.parse(summary["cpus_offline"]) & present
    assert found.warnings == ()


@pytest.mark.parametrize(
    ("name", "sockets", "cores", "threads"),
    [
        pytest.param("1s-nps4-smt", 1, 8, 2, id="one socket, SMT"),
        pytest.param("2s-snc4-8numa", 2, 16, 2, id="two sockets, SMT"),
        pytest.param("8s-mesh-nosmt", 8, 16, 1, id="eight sockets, no SMT"),
        pytest.param("16numa", 4, 32, 1, id="four sockets, no SMT"),
        pytest.param("36numa", 4, 36, 1, id="a node per CPU"),
        pytest.param("threads4", 1, 4, 4, id="four threads per core"),
    ],
)
def test_cores(name: str, sockets: int, cores: int, threads: int, unpacked: Unpack) -> None:
    machine = discover(unpacked(name)).machine
    found = [core for node in machine.numa_nodes for core in node.cores]

    assert machine.socket_count() == sockets
    assert len(found) == cores
    assert {len(core.threads) for core in found} == {threads}


def test_offline_sibling_leaves_a_core_with_one_thread(unpacked: Unpack) -> None:
    first, second = discover(unpacked("offline-isolated")).machine.numa_nodes

    assert [core.threads for core in first.cores] == [(0, 1), (2,), (4, 5), (6, 7)]
    assert [core.threads for core in second.cores] == [(8,), (10, 11), (12, 13), (14, 15)]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param(
            "1s-l3-8groups",
            {cpu: cpu // 4 for cpu in range(0, 32, 2)},
            id="groups smaller than the node have their own id",
        ),
        pytest.param(
            "2s-smt",
            dict.fromkeys(range(0, 16, 2)),
            id="a cache of exactly the node is no group",
        ),
        pytest.param(
            "1s-nps4-smt",
            dict.fromkeys(range(0, 16, 2), 0),
            id="a cache over several nodes is a group",
        ),
        pytest.param(
            "offline-isolated",
            {0: 0, 2: 0, 4: 0, 6: 0, 8: 1, 10: 1, 12: 1, 14: 1},
            id="with a thread offline the cache no longer looks like the node's",
        ),
    ],
)
def test_uncore_caches(name: str, expected: dict[int, int | None], unpacked: Unpack) -> None:
    machine = discover(unpacked(name)).machine

    assert {
        core.threads[0]: core.uncore_cache_id for node in machine.numa_nodes for core in node.cores
    } == expected


def test_huge_pages_keep_empty_pools(unpacked: Unpack) -> None:
    first, second = discover(unpacked("2s-hugepages-1g")).machine.numa_nodes

    assert first.hugepages == (
        HugePages(page_size_kib=2048, count=128),
        HugePages(page_size_kib=1048576, count=0),
    )
    assert second.hugepages == (
        HugePages(page_size_kib=2048, count=256),
        HugePages(page_size_kib=1048576, count=2),
    )


def test_memory_is_the_total_of_each_node(unpacked: Unpack) -> None:
    found = discover(unpacked("sparse-nodes"))

    assert [node.memory_bytes for node in found.machine.numa_nodes] == [
        255860 * 1024,
        224484 * 1024,
        257524 * 1024,
    ]
    assert found.memory_capacity == 737868 * 1024


def test_no_numa_directory_is_one_node(tmp_path: Path) -> None:
    root = _write(
        tmp_path,
        {
            "sys/devices/system/cpu/online": "0-1",
            "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages": "3",
            "proc/meminfo": "MemTotal:  2048 kB",
        }
        | _cpu(0, 0, 0, "0-1")
        | _cpu(1, 0, 0, "0-1"),
    )
    found = discover(root)
    (node,) = found.machine.numa_nodes

    assert (node.id, node.memory_bytes, node.distances) == (0, 2048 * 1024, None)
    assert node.hugepages == (HugePages(page_size_kib=2048, count=3),)
    assert [core.threads for core in node.cores] == [(0, 1)]
    assert found.warnings == (
        "the kernel shows no NUMA nodes; the whole machine is taken as node 0",
    )


def test_no_sysfs_at_all_reads_cpuinfo(tmp_path: Path) -> None:
    blocks = [
        f"processor\t: {cpu}\nphysical id\t: {cpu % 2}\ncore id\t: {cpu // 4}" for cpu in range(8)
    ]
    root = _write(tmp_path, {"proc/cpuinfo": "\n\n".join([*blocks, "Hardware : none"])})
    found = discover(root)

    assert [
        (core.socket_id, core.threads) for node in found.machine.numa_nodes for core in node.cores
    ] == [(0, (0, 2)), (1, (1, 3)), (0, (4, 6)), (1, (5, 7))]
    assert "there are several sockets; a kubelet takes each of them for a node" in found.warnings


def test_cpuinfo_without_core_ids(tmp_path: Path) -> None:
    root = _write(tmp_path, {"proc/cpuinfo": "processor : 0\n\nprocessor : 1"})

    assert [core.threads for core in discover(root).machine.numa_nodes[0].cores] == [(0,), (1,)]


def _odd(tmp_path: Path, files: dict[str, str]) -> Discovered:
    return discover(_write(tmp_path, {"sys/devices/system/cpu/online": "0-1"} | files))


def test_cpu_without_topology_is_left_out(tmp_path: Path) -> None:
    found = _odd(tmp_path, _node(0, "0-1") | _cpu(0, 0, 0, "0"))

    assert found.machine.cpu_count() == 1
    assert found.warnings == ("CPU 1 has no core or socket id and is left out",)


def test_cpu_outside_every_node_is_left_out(tmp_path: Path) -> None:
    found = _odd(tmp_path, _node(0, "0") | _cpu(0, 0, 0, "0") | _cpu(1, 1, 0, "1"))

    assert found.machine.cpu_count() == 1
    assert found.warnings == ("CPUs 1 belong to no NUMA node and are left out",)


def test_equal_core_ids_on_one_socket_are_reported(tmp_path: Path) -> None:
    found = _odd(tmp_path, _node(0, "0-1") | _cpu(0, 0, 0, "0") | _cpu(1, 0, 0, "1"))

    assert [core.threads for core in found.machine.numa_nodes[0].cores] == [(0,), (1,)]
    assert len(found.warnings) == 1
    assert "a kubelet takes them for one core" in found.warnings[0]


def test_cache_without_id_takes_the_lowest_cpu(tmp_path: Path) -> None:
    found = _odd(
        tmp_path,
        _node(0, "0-1")
        | _cpu(0, 0, 0, "0")
        | _cpu(1, 1, 0, "1")
        | _cache(0, 3, "0", None)
        | _cache(1, 2, "1", 5)
        | _cache(1, 3, "1", None),
    )

    assert [core.uncore_cache_id for core in found.machine.numa_nodes[0].cores] == [0, 1]


def test_online_file_missing_asks_each_cpu(tmp_path: Path) -> None:
    files = _node(0, "0-2") | _cpu(0, 0, 0, "0") | _cpu(1, 1, 0, "1") | _cpu(2, 2, 0, "2")
    found = discover(_write(tmp_path, files | {"sys/devices/system/cpu/cpu1/online": "0"}))

    assert _cpus_of(found.machine.numa_nodes[0]) == CpuSet.of([0, 2])
    assert found.offline == CpuSet.of([1])


def test_node_without_memory_information(tmp_path: Path) -> None:
    files = _node(0, "0-1") | _cpu(0, 0, 0, "0") | _cpu(1, 1, 0, "1")
    del files["sys/devices/system/node/node0/meminfo"]
    del files["sys/devices/system/node/node0/distance"]
    found = _odd(tmp_path, files)

    assert found.machine.numa_nodes[0].memory_bytes == 0
    assert found.machine.numa_nodes[0].distances is None
    assert found.warnings == ("NUMA node 0 reports no memory information",)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        pytest.param(
            {"sys/devices/system/node/online": "0,64"} | _node(0, "0") | _node(64, ""),
            "NUMA node 64: ids above 63 are not supported",
            id="a node id that no mask holds",
        ),
        pytest.param({}, "shows any CPU", id="nothing there"),
        pytest.param({"proc/cpuinfo": "Hardware : none"}, "lists no processor", id="no processor"),
        pytest.param(
            _node(0, "0") | _cpu(0, 0, 0, "x"),
            'thread_siblings_list: strconv.Atoi: parsing "x": invalid syntax',
            id="a list that is none",
        ),
        pytest.param(
            _node(0, "0")
            | _cpu(0, 0, 0, "0")
            | {"sys/devices/system/cpu/cpu0/topology/core_id": "one"},
            'core_id: must hold a whole number, not "one"',
            id="a number that is none",
        ),
        pytest.param(
            _node(0, "0") | _cpu(0, 0, 0, "0") | {"sys/devices/system/node/node0/distance": "10 x"},
            'distance: must hold whole numbers, not "10 x"',
            id="a distance that is none",
        ),
        pytest.param(
            _node(0, "0")
            | _cpu(0, 0, 0, "0")
            | {"sys/devices/system/node/node0/meminfo": "Node 0 MemFree: 1 kB"},
            "has no MemTotal line",
            id="no total",
        ),
        pytest.param(
            _node(0, "0-1") | _cpu(0, 0, 0, "1") | _cpu(1, 1, 0, "0-1"),
            'CPU 0 is not among its own siblings "1"',
            id="a CPU without itself",
        ),
        pytest.param(
            _node(0, "0-2") | _cpu(0, 0, 0, "0-1") | _cpu(1, 0, 0, "0-1") | _cpu(2, 1, 0, "1-2"),
            "CPUs 1 are threads of another core too",
            id="a CPU in two cores",
        ),
        pytest.param(
            _node(0, "0") | _cpu(0, 0, 0, "0") | _node(1, "0"),
            "node1: CPUs 0 are those of another node too",
            id="a CPU in two nodes",
        ),
        pytest.param(
            _node(0, "0") | {"sys/devices/system/cpu/online": ""},
            "no CPU is online",
            id="no CPU online",
        ),
    ],
)
def test_refused(files: dict[str, str], message: str, tmp_path: Path) -> None:
    root = _write(tmp_path, files)

    with pytest.raises(ConfigError) as refused:
        discover(root)

    assert message in str(refused.value)


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("sys/devices/system/node/online", id="file"),
        pytest.param("sys/devices/system/node/node0", id="directory"),
        pytest.param("sys/devices/system/cpu/cpu0/cache", id="directory of caches"),
    ],
)
def test_what_is_there_and_cannot_be_read_is_named(path: str, tmp_path: Path) -> None:
    node = {} if path.endswith("node0") else _node(0, "0")
    online = {"sys/devices/system/node/online": "0"} if path.endswith("node0") else {}
    root = _write(tmp_path, node | online | _cpu(0, 0, 0, "0"))
    # A link to itself cannot be read, not even by root.
    (root / path).symlink_to(root / path)

    with pytest.raises(ConfigError) as refused:
        discover(root)

    assert f"{root / path}" in str(refused.value)
    assert "cannot be read" in str(refused.value)
