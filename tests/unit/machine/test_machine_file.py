"""Machine files and their schema."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.machine.conftest import FIXTURES

from numalign.cli.main import cli
from numalign.document.problems import DocumentError
from numalign.machine.discover import discover
from numalign.machine.machine_file import described, read_machine_file, write_machine_file
from numalign.machine.schema import document_of_machine, machine_from_document
from numalign.model.machine import Core, HugePages, Machine, NumaNode

SMALL = Machine(
    numa_nodes=(
        NumaNode(
            id=0,
            memory_bytes=1 << 30,
            hugepages=(HugePages(page_size_kib=2048, count=4),),
            distances=(10, 21),
            cores=(Core(id=0, socket_id=0, threads=(0, 2), uncore_cache_id=0),),
        ),
        NumaNode(id=3, cores=(Core(id=0, socket_id=1, threads=(1, 3)),)),
    ),
    num_cpus=4,
)


@st.composite
def machines(draw: st.DrawFn) -> Machine:
    ids = draw(st.lists(st.integers(0, 63), min_size=1, max_size=5, unique=True))
    cpus = iter(range(1000))
    nodes = []
    for node_id in ids:
        cores = [
            Core(
                id=draw(st.integers(0, 9)),
                socket_id=draw(st.integers(-1, 3)),
                threads=tuple(next(cpus) for _ in range(draw(st.integers(0, 3)))),
                uncore_cache_id=draw(st.none() | st.integers(0, 7)),
            )
            for _ in range(draw(st.integers(0, 3)))
        ]
        nodes.append(
            NumaNode(
                id=node_id,
                memory_bytes=draw(st.integers(0, 1 << 45)),
                hugepages=tuple(
                    HugePages(page_size_kib=size, count=draw(st.integers(0, 99)))
                    for size in draw(st.sets(st.sampled_from([64, 2048, 1048576])))
                ),
                distances=draw(st.none() | st.lists(st.integers(10, 255)).map(tuple)),
                cores=tuple(cores),
            )
        )
    return Machine(
        numa_nodes=tuple(nodes),
        num_cpus=draw(st.none() | st.integers(0, 99)),
        num_sockets=draw(st.none() | st.integers(0, 9)),
    )


@given(machines())
def test_any_machine_survives_its_document(machine: Machine) -> None:
    assert machine_from_document(document_of_machine(machine)) == machine


@pytest.mark.parametrize("name", ["machine.yaml", "machine.json"])
def test_file_round_trip(name: str, tmp_path: Path) -> None:
    write_machine_file(tmp_path / name, SMALL)

    assert read_machine_file(tmp_path / name) == SMALL


def test_discovered_machine_survives_its_file(
    unpacked: Callable[[str], Path], tmp_path: Path
) -> None:
    machine = discover(unpacked("cpuless-node")).machine
    write_machine_file(tmp_path / "machine.yaml", machine)

    assert read_machine_file(tmp_path / "machine.yaml") == machine


@pytest.mark.parametrize("name", sorted(path.stem for path in FIXTURES.glob("*.json")))
@pytest.mark.parametrize("form", ["yaml", "json"])
def test_what_the_command_prints_is_a_machine_file(
    unpacked: Callable[[str], Path], tmp_path: Path, name: str, form: str
) -> None:
    root = unpacked(name)
    printed = CliRunner().invoke(cli, ["machine", "--root", str(root), "-o", form])
    assert printed.exit_code == 0, printed.output
    path = tmp_path / f"machine.{form}"
    path.write_text(printed.stdout)

    assert read_machine_file(path) == discover(root).machine


def test_what_is_beside_the_machine_is_read_only_where_the_command_prints_it(
    tmp_path: Path,
) -> None:
    path = tmp_path / "machine.yaml"
    path.write_text("machine: {numa_nodes: [{id: 0}]}\npods: {}\ncpus: 4\n")

    with pytest.raises(DocumentError) as refused:
        read_machine_file(path)

    assert refused.value.problems == (f"{path}: cpus: unknown key",)


def test_machine_without_a_machine_key(tmp_path: Path) -> None:
    path = tmp_path / "bare.yaml"
    path.write_text(yaml.safe_dump(document_of_machine(SMALL)))

    assert read_machine_file(path) == SMALL


def test_described_adds_up_the_memory() -> None:
    assert described(SMALL).memory_capacity == 1 << 30


def _with_cores(*cores: dict[str, object]) -> dict[str, object]:
    return {"numa_nodes": [{"id": 0, "cores": list(cores)}]}


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        pytest.param(None, "machine.numa_nodes: must name at least one node", id="empty"),
        pytest.param([1], "machine: must be a mapping, not a list", id="a list"),
        pytest.param({"nodes": []}, "machine.nodes: unknown key", id="unknown key"),
        pytest.param(
            {"numa_nodes": [{"id": 0, "distance": []}]},
            "machine.numa_nodes[0].distance: unknown key",
            id="unknown key of a node",
        ),
        pytest.param(
            {"numa_nodes": [{"id": 64}]},
            "machine.numa_nodes[0].id: NUMA node 64: ids above 63 are not supported",
            id="node id too large",
        ),
        pytest.param(
            {"numa_nodes": [{"id": 1}, {"id": 1}]},
            "machine.numa_nodes[1].id: NUMA node 1 is given twice",
            id="node id twice",
        ),
        pytest.param(
            {"numa_nodes": [{}]}, "machine.numa_nodes[0].id: must be given", id="node without id"
        ),
        pytest.param(
            {"numa_nodes": [None]},
            "machine.numa_nodes[0]: must be a mapping, not null",
            id="no node",
        ),
        pytest.param(
            _with_cores(
                {"id": 0, "socket_id": 0, "threads": [0, 1]},
                {"id": 1, "socket_id": 0, "threads": [1]},
            ),
            "machine.numa_nodes[0].cores[1].threads: CPU 1 is given twice",
            id="CPU twice",
        ),
        pytest.param(
            _with_cores({"id": 0, "socket_id": 0, "threads": [-1]}),
            "machine.numa_nodes[0].cores[0].threads: CPU ids must lie between 0 and 1048575",
            id="negative CPU",
        ),
        pytest.param(
            _with_cores({"id": 0, "socket_id": 0, "threads": ["0"]}),
            'machine.numa_nodes[0].cores[0].threads[0]: must be a whole number, not "0"',
            id="CPU as text",
        ),
        pytest.param(
            _with_cores({"id": 0, "threads": [0]}),
            "machine.numa_nodes[0].cores[0].socket_id: must be given",
            id="no socket",
        ),
        pytest.param(
            {"numa_nodes": [{"id": 0, "memory_bytes": -1}]},
            "machine.numa_nodes[0].memory_bytes: must be at least 0, not -1",
            id="negative memory",
        ),
        pytest.param(
            {"numa_nodes": [{"id": 0, "hugepages": [{"page_size_kib": 0, "count": 1}]}]},
            "machine.numa_nodes[0].hugepages[0].page_size_kib: must be at least 1, not 0",
            id="page of no size",
        ),
    ],
)
def test_refused(document: object, problem: str) -> None:
    with pytest.raises(DocumentError) as refused:
        machine_from_document(document, "machine")

    assert problem in refused.value.problems


def test_every_mistake_is_named(tmp_path: Path) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text("machine: {numa_nodes: [{id: 99, memory_bytes: x}]}\n")

    with pytest.raises(DocumentError) as refused:
        read_machine_file(path)

    assert refused.value.problems == (
        f"{path}: machine.numa_nodes[0].id: NUMA node 99: ids above 63 are not supported",
        f'{path}: machine.numa_nodes[0].memory_bytes: must be a whole number, not "x"',
    )


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="cannot be read: No such file or directory"):
        read_machine_file(tmp_path / "none.yaml")
