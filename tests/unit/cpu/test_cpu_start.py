"""Starting from a stored state: refused as the kubelet does, or fitted to what is now."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.unit.cpu.cpu_machines import GATES, PLRM, T8, engine, held, machine, single

from numalign.cpu.engine import CpuEngine
from numalign.cpu.strategies import KUBELET, SAFE
from numalign.errors import StartError, StateError
from numalign.model.ids import PodUid


def stored(
    default: str,
    entries: dict[str, dict[str, str]] | None = None,
    pods: dict[str, str] | None = None,
    policy: str = "static",
) -> bytes:
    content: dict[str, Any] = {"policyName": policy, "defaultCpuSet": default}
    if entries:
        content["entries"] = entries
    if pods is not None:
        content["podEntries"] = pods
    return json.dumps(content).encode()


def wrapped(why: str) -> str:
    return (
        f"could not restore state from checkpoint: {why}, please drain this node and delete "
        'the CPU manager checkpoint file "/state" before restarting Kubelet'
    )


@pytest.mark.parametrize(
    ("by", "found", "message"),
    [
        pytest.param(
            engine(T8),
            stored("", policy="none"),
            wrapped('configured policy "static" differs from state checkpoint policy "none"'),
            id="policy",
        ),
        pytest.param(
            engine(T8, "", policy="none"),
            stored("0-7"),
            wrapped('configured policy "none" differs from state checkpoint policy "static"'),
            id="policy to none",
        ),
        pytest.param(
            engine(T8),
            stored("0-x"),
            wrapped(
                'could not parse default cpu set "0-x": strconv.Atoi: parsing "x": invalid syntax'
            ),
            id="default set",
        ),
        pytest.param(
            engine(T8),
            stored("0-6", {"p": {"a": "8-7"}}),
            wrapped(
                'could not parse cpuset "8-7" for container "a" in pod "p": '
                'invalid range "8-7" (8 > 7)'
            ),
            id="assignment",
        ),
        pytest.param(
            engine(T8),
            stored("0-7", pods={}),
            wrapped("checkpoint is corrupted"),
            id="pod sets without the gate",
        ),
        pytest.param(
            engine(T8, gates=PLRM),
            stored("0-7", pods={"p": "x"}),
            wrapped("checkpoint is corrupted"),
            id="pod set",
        ),
        pytest.param(
            engine(T8),
            stored("", {"p": {"a": "1"}}),
            "default cpuset cannot be empty",
            id="empty default set",
        ),
        pytest.param(
            engine(T8, "0,4", "strict-cpu-reservation"),
            stored("0-7"),
            'some of strictly reserved cpus: "0,4" are present in defaultCpuSet: "0-7"',
            id="strict reservation",
        ),
        pytest.param(
            engine(T8, "0,1"),
            stored("0,2-7", {"p": {"a": "1"}}),
            'not all reserved cpus: "0-1" are present in defaultCpuSet: "0,2-7"',
            id="reserved",
        ),
        pytest.param(
            engine(T8),
            stored("0-7", {"p": {"a": "1,5"}}),
            'pod: p, container: a cpuset: "1,5" overlaps with default cpuset "0-7"',
            id="overlap",
        ),
        pytest.param(
            engine(T8),
            stored("0,2-3", {"p": {"a": "1,5"}}),
            'current set of available CPUs "0-7" doesn\'t match with CPUs in state "0-3,5"',
            id="CPUs missing",
        ),
        pytest.param(
            engine(T8),
            stored("0,2-8", {"p": {"a": "1"}}),
            'current set of available CPUs "0-7" doesn\'t match with CPUs in state "0-8"',
            id="CPUs too many",
        ),
    ],
)
def test_kubelet_start_refuses(by: CpuEngine, found: bytes, message: str) -> None:
    with pytest.raises(StartError) as refused:
        by.start(found)

    assert (refused.value.stage, str(refused.value)) == ("cpu_manager_start", message)


def test_kubelet_start_refuses_what_is_no_json() -> None:
    with pytest.raises(StartError, match="could not restore state from checkpoint: "):
        engine(T8).start(b"{")


@pytest.mark.parametrize(
    ("by", "found", "default"),
    [
        pytest.param(engine(T8), None, "0-7", id="nothing stored"),
        pytest.param(engine(T8), stored(""), "0-7", id="empty state"),
        pytest.param(engine(T8, "0", "strict-cpu-reservation"), None, "1-7", id="strict"),
        pytest.param(engine(T8, "", policy="none"), None, "", id="none"),
        pytest.param(engine(T8, "0"), stored("0-7"), "0-7", id="reservation may shrink"),
        pytest.param(engine(T8, gates=PLRM), stored("0-7"), "0-7", id="without pod sets"),
    ],
)
def test_kubelet_start_accepts(by: CpuEngine, found: bytes | None, default: str) -> None:
    started = by.start(found)

    assert str(started.state.default) == default
    assert started.reports == ()


@pytest.mark.parametrize(
    ("found", "state"),
    [
        pytest.param(
            stored("0,3-4,7", {"p": {"a": "1,5", "i": "2,5-6"}}, {}),
            {"p": {"a": "1,5", "i": "2,5-6"}},
            id="containers of one pod may overlap",
        ),
        pytest.param(
            stored("0,3-4,7", {"p": {"a": "1,5", "b": "2"}}, {"p": "1-2,5-6"}),
            {"p": {"a": "1,5", "b": "2"}},
            id="pod set",
        ),
    ],
)
def test_both_starts_agree_on_a_sound_state(found: bytes, state: dict[str, Any]) -> None:
    refusing = engine(T8, gates=PLRM, strategies=KUBELET).start(found)
    rebasing = engine(T8, gates=PLRM, strategies=SAFE).start(found)

    assert refusing.state == rebasing.state
    assert rebasing.reports == ()
    assert held(refusing.state, "p") == state["p"]


def test_rebase_keeps_what_fits_over_a_larger_reservation() -> None:
    by = engine(T8, "0-1", strategies=SAFE)

    started = by.start(stored("0,3-4,7", {"p": {"a": "1,5"}, "q": {"a": "2,6"}}))

    assert started.state.assignments.keys() == {"q"}
    assert str(started.state.default) == "0-1,3-5,7"
    assert started.reports == (
        'pod p, container a: CPUs "1,5" are dropped: "1" reserved now',
        'the shared CPUs are "0-1,3-5,7", they were "0,3-4,7"',
    )


def test_rebase_over_strict_reservation_turned_on() -> None:
    started = engine(T8, "0", "strict-cpu-reservation", strategies=SAFE).start(
        stored("0,2-4,6-7", {"p": {"a": "1,5"}})
    )

    assert held(started.state, "p") == {"a": "1,5"}
    assert str(started.state.default) == "2-4,6-7"
    assert started.reports == ('the shared CPUs are "2-4,6-7", they were "0,2-4,6-7"',)


def test_rebase_with_everything_assigned_under_strict_reservation() -> None:
    started = engine(T8, "0", "strict-cpu-reservation", strategies=SAFE).start(
        stored("", {"p": {"a": "1-7"}})
    )

    assert held(started.state, "p") == {"a": "1-7"}
    assert started.reports == ()


def test_rebase_over_cpus_that_went_and_came() -> None:
    by = engine(machine({0: [*single(range(6)), *single(range(8, 10))]}), "0", strategies=SAFE)

    started = by.start(stored("0-3", {"p": {"a": "4-5"}, "q": {"a": "6-7"}}))

    assert held(started.state, "p") == {"a": "4-5"}
    assert held(started.state, "q") == {}
    assert str(started.state.default) == "0-3,8-9"
    assert started.reports[0] == (
        'pod q, container a: CPUs "6-7" are dropped: "6-7" not on the machine'
    )


def test_rebase_lets_the_first_of_two_pods_keep_a_cpu() -> None:
    started = engine(T8, strategies=SAFE).start(
        stored("0,3-4,7", {"q": {"a": "1-2"}, "p": {"a": "2,6"}})
    )

    assert held(started.state, "p") == {"a": "2,6"}
    assert started.reports[0] == (
        'pod q, container a: CPUs "1-2" are dropped: "2" held by another pod'
    )


def test_rebase_to_policy_none_and_back() -> None:
    by = engine(T8, "", policy="none", strategies=SAFE)
    started = by.start(stored("0,2-4,6-7", {"p": {"a": "1,5"}}))

    assert started.state == by.start(None).state
    assert started.reports == (
        "the CPU policy is none, it was static",
        'pod p, container a: CPUs "1,5" are dropped: the policy none gives no exclusive CPUs',
        'the shared CPUs are "", they were "0,2-4,6-7"',
    )
    back = engine(T8, strategies=SAFE).start(by.encode(started.state))
    assert str(back.state.default) == "0-7"
    assert back.reports[0] == "the CPU policy is static, it was none"


def test_rebase_drops_a_pod_set_as_a_whole() -> None:
    started = engine(T8, "0,6", gates=PLRM, strategies=SAFE).start(
        stored("0,3-4,7", {"p": {"a": "1,5", "b": "2,6"}}, {"p": "1-2,5-6"})
    )

    assert (started.state.assignments, started.state.pod_sets) == ({}, {})
    assert str(started.state.default) == "0-7"
    assert started.reports[:3] == (
        'pod p: its set of CPUs "1-2,5-6" is dropped: "6" reserved now',
        'pod p, container a: CPUs "1,5" are dropped: it is part of the pod\'s set',
        'pod p, container b: CPUs "2,6" are dropped: it is part of the pod\'s set',
    )


def test_rebase_without_the_gate_keeps_the_containers_of_a_pod_set() -> None:
    started = engine(T8, gates=GATES, strategies=SAFE).start(
        stored("0,3-4,7", {"p": {"a": "1,5"}}, {"p": "1-2,5-6"})
    )

    assert held(started.state, "p") == {"a": "1,5"}
    assert started.state.pod_sets == {}
    assert str(started.state.default) == "0,2-4,6-7"
    assert started.reports[0] == (
        'pod p: its set of CPUs "1-2,5-6" is not kept: pods hold no CPUs as a whole now'
    )


def test_rebase_frees_a_pod_set_that_no_container_uses() -> None:
    started = engine(T8, gates=PLRM, strategies=SAFE).start(stored("0,3-7", pods={"p": "1-2"}))

    assert started.state.pod_sets == {}
    assert str(started.state.default) == "0-7"
    assert "no container uses it" in started.reports[0]


def test_rebase_finds_leaked_cpus_again() -> None:
    started = engine(T8, strategies=SAFE).start(stored("0,7", {"p": {"a": "2-3,6"}}))

    assert str(started.state.default) == "0-1,4-5,7"
    assert held(started.state, "p") == {"a": "2-3,6"}


@pytest.mark.parametrize(
    "found", [b"", b"{", b"[]", b'{"policyName": 1}', stored("x"), stored("0-7", {"p": {"a": "-"}})]
)
def test_rebase_reads_no_damaged_state(found: bytes) -> None:
    with pytest.raises(StateError, match="the stored CPU state cannot be read: "):
        engine(T8, strategies=SAFE).start(found)


def test_encoding_is_stable_and_leaves_out_what_can_be_reused() -> None:
    by = engine(T8)
    found = stored("0,2-4,6-7", {"q": {"a": "5"}, "p": {"b": "1", "a": ""}})
    state = by.start(found).state

    encoded = by.encode(state)

    assert encoded == (
        b'{"policyName":"static","entries":{"q":{"a":"5"},"p":{"a":"","b":"1"}},'
        b'"defaultCpuSet":"0,2-4,6-7"}'
    )
    assert by.start(encoded).state == state
    assert state.cpus_of(PodUid("p"), "a") == by.start(encoded).state.assignment(PodUid("p"), "a")
