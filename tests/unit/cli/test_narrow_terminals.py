"""Lists of many columns, on a terminal that has no room for them."""

from __future__ import annotations

from tests.unit.cli.rendering import text_of

from numalign.cli.tables.admissions import admissions
from numalign.cli.tables.journal import decisions
from numalign.cli.tables.machine_map import machine_parts
from numalign.cli.tables.ownership import Books
from numalign.machine.schema import machine_from_document
from numalign.v1 import decisions_pb2 as dc
from numalign.v1 import hint_provider_pb2 as hp
from numalign.v1 import types_pb2 as pb

LONG = "a-namespace/a-pod-with-a-long-name-6f7d9c"


def record() -> pb.AdmissionRecord:
    namespace, _, name = LONG.partition("/")
    return pb.AdmissionRecord(
        namespace=namespace,
        name=name,
        owner="kubelet",
        qos_class="Guaranteed",
        config_generation=3,
        allocations=[pb.ContainerAllocation(container="server", cpus="2-5,18-21")],
    )


def decision(reason: str = "") -> dc.DecisionRecord:
    namespace, _, name = LONG.partition("/")
    made = dc.DecisionRecord(
        number=12,
        times=3,
        namespace=namespace,
        name=name,
        verdict=pb.VERDICT_REJECTED if reason else pb.VERDICT_ADMITTED,
        reason=reason,
        message="uid-1 holds too much" if reason else "",
    )
    made.last_time.seconds = 1_700_000_000
    made.took.nanos = 1_900_000
    return made


def test_admitted_pods() -> None:
    lines = text_of([admissions([record()])], width=80).splitlines()

    assert lines[0] == f"{LONG}  kubelet, Guaranteed, config 3"
    assert lines[2].split() == ["server", "2-5,18-21", "-", "-", "-"]
    wide = text_of([admissions([record()])], width=140)
    assert wide.splitlines()[0].split()[:3] == ["pod", "owner", "QoS"]


def test_decisions() -> None:
    made = [decision("TopologyAffinityError"), decision()]
    lines = text_of([decisions(made, {"uid-1": "default/web"})], width=80).splitlines()

    text = " ".join(" ".join(lines).split())
    assert f"{LONG} rejected 1.9 ms, 3 times TopologyAffinityError: default/web holds" in text
    assert f"{LONG} admitted 1.9 ms, 3 times" in text
    assert max(map(len, lines)) <= 80
    wide = text_of([decisions(made, {})], width=140)
    assert wide.splitlines()[0].split() == ["no.", "time", "pod", "verdict", "times", "took", "why"]


def test_memory_stays_on_its_line() -> None:
    machine = machine_from_document(
        {"numa_nodes": [{"id": 0, "memory_bytes": 1 << 34, "cores": []}]}, "machine"
    )
    gib = 1 << 30
    row = hp.MemoryTable(
        resource="memory", total=16 * gib, system_reserved=gib, reserved=8 * gib, free=7 * gib
    )
    books = Books(memory=hp.MemoryState(nodes=[hp.NumaNodeMemory(numa_node=0, tables=[row])]))

    said = "8Gi given out, 1Gi reserved, 7Gi free"
    for width, bar in ((80, "[x#####....]"), (110, "[xx############..........]")):
        (line,) = (
            line
            for line in text_of(machine_parts(machine, books), width=width).splitlines()
            if line.startswith("  memory")
        )
        assert line.split("  ")[-2:] == [bar, said]
