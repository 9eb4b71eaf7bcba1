"""Drawings of fixed messages."""

from __future__ import annotations

import pytest
from tests.unit.cli.rendering import text_of, words_of

from numalign.cli.tables.allocation import allocation_table
from numalign.cli.tables.amounts import amount_text, bytes_text, hint_text, mask_text
from numalign.cli.tables.decision import decision_parts
from numalign.cli.tables.explanation import explanation_parts, hints_cell
from numalign.cli.verdicts import Exit, exit_of, worst
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import types_pb2 as pb

GIB = 1 << 30


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        pytest.param(0, "0", id="nothing"),
        pytest.param(1023, "1023", id="bytes"),
        pytest.param(1024, "1Ki", id="kibi"),
        pytest.param(3 * GIB // 2, "1.5Gi", id="exact-part"),
        pytest.param(GIB + 1, "1.0Gi", id="rounded"),
        pytest.param(1 << 60, "1Ei", id="exbi"),
        pytest.param(1 << 70, "1024Ei", id="beyond"),
    ],
)
def test_sizes(size: int, expected: str) -> None:
    assert bytes_text(size) == expected


def test_amounts_depend_on_the_resource() -> None:
    assert amount_text("cpu", 2048) == "2048"
    assert amount_text("memory", 2048) == "2Ki"
    assert amount_text("hugepages-2Mi", 2048) == "2Ki"


def test_masks() -> None:
    assert mask_text(pb.Hint(mask=5)) == "{0,2}"
    assert mask_text(pb.Hint(mask=0)) == "{}"
    assert mask_text(pb.Hint()) == "any"
    assert hint_text(pb.Hint(mask=1 << 63, preferred=True)) == "{63} preferred"


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        pytest.param([], Exit.ADMITTED, id="none"),
        pytest.param([Exit.ADMITTED, Exit.DEFERRED], Exit.DEFERRED, id="deferred"),
        pytest.param([Exit.REJECTED, Exit.DEFERRED], Exit.REJECTED, id="rejected"),
        pytest.param([Exit.ERROR, Exit.REJECTED], Exit.ERROR, id="error"),
    ],
)
def test_the_worst_code(codes: list[Exit], expected: Exit) -> None:
    assert worst(codes) is expected


def test_a_verdict_that_is_none_is_an_error() -> None:
    assert exit_of(pb.VERDICT_UNSPECIFIED) is Exit.ERROR


def test_an_allocation_table() -> None:
    held = pb.ContainerAllocation(
        container="main",
        cpus="2-3",
        memory=[
            pb.MemoryBlock(numa_nodes=[0, 1], resource="memory", size=2 * GIB),
            pb.MemoryBlock(numa_nodes=[1], resource="hugepages-2Mi", size=1 << 21),
            pb.MemoryBlock(numa_nodes=[1], resource="hugepages-1Gi", size=0),
        ],
        devices=[
            pb.DeviceAllocation(
                resource="example.com/gpu",
                ids=["g0"],
                by_numa_node=[pb.NumaDevices(numa_node=1, ids=["g0"])],
            ),
            pb.DeviceAllocation(
                resource="example.com/nic",
                ids=["n0"],
                by_numa_node=[pb.NumaDevices(numa_node=-1, ids=["n0"])],
            ),
        ],
        affinity=pb.Hint(mask=3, preferred=True),
    )
    shared = pb.ContainerAllocation(container="side")
    pod = pb.PodAllocation(cpus="2-7")

    assert words_of([allocation_table([held, shared], pod)]) == [
        "container CPUs memory devices affinity",
        "(the pod) 2-7 - -",
        "main 2-3 2Gi on {0,1} example.com/gpu: g0 on {1} {0,1} preferred",
        "2Mi hugepages-2Mi on {1} example.com/nic: n0",
        "side shared - - -",
    ]


def test_a_rejection() -> None:
    answer = ad.AdmitResponse(
        verdict=pb.VERDICT_REJECTED,
        reason="TopologyAffinityError",
        message="Resources cannot be allocated with Topology locality",
        warnings=["provider x was left out"],
        dry_run=True,
        explanation=pb.Explanation(
            summary="cpu is held by u1/main.",
            obstacles=[
                pb.Obstacle(
                    container="main",
                    resources=["cpu"],
                    facts=[
                        pb.ResourceFacts(
                            resource="cpu",
                            requested=6,
                            nodes=[
                                pb.NodeFacts(
                                    numa_node=0,
                                    capacity=8,
                                    reserved=2,
                                    free=4,
                                    holders=[pb.Holder(pod_uid="u1", container="main", amount=2)],
                                ),
                                pb.NodeFacts(numa_node=1, capacity=8, free=8),
                            ],
                        )
                    ],
                )
            ],
        ),
    )

    assert text_of(decision_parts("shop/web", answer, {"u1": "shop/old"})) == (
        "shop/web  rejected  TopologyAffinityError  (dry run: nothing is kept)\n"
        "  Resources cannot be allocated with Topology locality\n"
        "  warning: provider x was left out\n"
        "  cpu is held by shop/old/main.\n"
        "  in the way of container main: cpu\n"
        "   resource  asked  node  capacity  reserved  free  held by\n"
        "   cpu       6      0     8         2         4     shop/old/main 2\n"
        "                    1     8         0         8     -\n"
    )


def test_a_deferral() -> None:
    answer = ad.AdmitResponse(
        verdict=pb.VERDICT_DEFERRED,
        reason="Preempting",
        victims=[pb.Victim(pod_uid="u1", namespace="n", name="low")],
    )
    answer.retry_after.FromMilliseconds(1500)
    text = text_of(decision_parts("p", answer, {}))

    assert "p  not yet  Preempting" in text
    assert "ask again in 1.5 s" in text
    assert "to end first: n/low (u1)" in text


def test_an_admission_that_was_there_before() -> None:
    answer = ad.AdmitResponse(verdict=pb.VERDICT_ADMITTED, already_admitted=True, dry_run=True)

    assert "it was admitted before" in text_of(decision_parts("p", answer, {}))


ALLOCATED = pb.PodResources(
    containers=[
        pb.ContainerResources(
            container="c",
            amounts=pb.ResourceAmounts(requests={"memory": "1Gi", "cpu": "1"}, limits={"cpu": "2"}),
        ),
        pb.ContainerResources(container="d"),
    ],
    pod=pb.ResourceAmounts(limits={"cpu": "4"}),
)
ALLOCATED_TEXT = (
    "  allocated to c: requests cpu 1, memory 1Gi; limits cpu 2\n"
    "  allocated to d: nothing\n"
    "  allocated to the pod: limits cpu 4\n"
)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        pytest.param(
            ad.AdmitResponse(verdict=pb.VERDICT_ADMITTED, resources=ALLOCATED),
            f"p  admitted\n{ALLOCATED_TEXT}",
            id="granted",
        ),
        pytest.param(
            ad.AdmitResponse(
                verdict=pb.VERDICT_REJECTED,
                reason="Infeasible",
                handler_reason="Infeasible",
                message="never",
                resources=ALLOCATED,
            ),
            f"p  rejected  Infeasible\n  never\n{ALLOCATED_TEXT}",
            id="infeasible",
        ),
        pytest.param(
            ad.AdmitResponse(
                verdict=pb.VERDICT_DEFERRED,
                reason="Deferred",
                handler_reason="OutOfcpu",
                message="later",
                resources=ALLOCATED,
            ),
            f"p  not yet  Deferred (OutOfcpu)\n  later\n{ALLOCATED_TEXT}",
            id="deferred",
        ),
        pytest.param(
            ad.AdmitResponse(verdict=pb.VERDICT_ADMITTED, resize_pending=True, resources=ALLOCATED),
            "p  admitted\n"
            "  a resize is pending: the pod asks for other CPU or memory than it is allocated\n"
            f"{ALLOCATED_TEXT}",
            id="pending",
        ),
    ],
)
def test_resizes(answer: ad.AdmitResponse, text: str) -> None:
    assert text_of(decision_parts("p", answer, {})) == text


@pytest.mark.parametrize(
    ("hints", "expected"),
    [
        pytest.param(pb.HintList(kind=pb.HintList.KIND_NO_PREFERENCE), "no preference", id="nil"),
        pytest.param(pb.HintList(kind=pb.HintList.KIND_IMPOSSIBLE), "nowhere", id="empty"),
        pytest.param(
            pb.HintList(
                kind=pb.HintList.KIND_HINTS,
                masks=[1, 3, 0],
                preferred=[True, False, True],
                has_affinity=[True, True, False],
            ),
            "{0}* {0,1} any*",
            id="hints",
        ),
        pytest.param(
            pb.HintList(kind=pb.HintList.KIND_HINTS, masks=range(1, 16), preferred=[False] * 15),
            "{0} {1} {0,1} {2} {0,2} {1,2} {0,1,2} {3} {0,3} {1,3} {0,1,3} {2,3} and 3 more",
            id="many",
        ),
    ],
)
def test_hints(hints: pb.HintList, expected: str) -> None:
    assert hints_cell(hints) == expected


def test_every_merge_and_call() -> None:
    hints = pb.HintMap(
        resources={"cpu": pb.HintList(kind=pb.HintList.KIND_HINTS, masks=[1], preferred=[True])}
    )
    explanation = pb.Explanation(
        merges=[
            pb.MergeRecord(
                container="c",
                providers=[
                    pb.ProviderHints(provider="device"),
                    pb.ProviderHints(provider="cpu", hints=hints),
                ],
                best=pb.Hint(mask=1, preferred=True),
                admitted=True,
            ),
            pb.MergeRecord(providers=[pb.ProviderHints(provider="cpu", hints=hints)]),
        ],
        allocate_calls=[
            pb.AllocateCall(provider="cpu", container="c"),
            pb.AllocateCall(provider="memory", error="no room"),
        ],
        plugin_calls=[
            pb.PluginCall(container="c", resource="r", call="Allocate", devices=["a", "b"]),
            pb.PluginCall(
                container="c",
                resource="r",
                call="GetPreferredAllocation",
                available=["a", "b"],
                must_include=["a"],
                size=1,
                response=["a"],
            ),
        ],
    )

    assert words_of(explanation_parts(explanation, {})) == [
        "merge provider resource hints best policy",
        "c device - no preference {0} preferred admits",
        "cpu cpu {0}*",
        "(the pod) cpu cpu {0}* any not preferred refuses",
        "allocate provider outcome",
        "c cpu ok",
        "(the pod) memory no room",
        "plugin call container resource asked answer",
        "Allocate c r a, b ok",
        "GetPreferredAllocation c r 1 of a, b with a a",
    ]
