"""What recordings leave out of the merge (MERGE): ties, and that nothing is changed in place."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from numalign_agent.changes import Operation
from numalign_agent.merging.merge import Table, merge
from numalign_agent.pod import AgentPod


def pod(uid: str, name: str = "a", **metadata: object) -> AgentPod:
    return AgentPod(
        {
            "metadata": {"uid": uid, "name": name, "namespace": "default", **metadata},
            "spec": {"containers": []},
        }
    )


def test_finalizers_and_owners_are_not_picked_up() -> None:
    table = merge("api", None, [pod("u")], "t").table

    merged = merge("api", table, [pod("u", finalizers=["x"], resourceVersion="2")], "t")

    assert merged.changes == ()
    assert merged.table == table


def test_a_manifest_edited_without_a_uid_is_another_pod() -> None:
    table = merge("file", None, [pod("old")], "t").table

    merged = merge("file", table, [pod("new")], "t")

    assert [(change.operation, [p.uid for p in change.pods]) for change in merged.changes] == [
        (Operation.REMOVE, ["old"]),
        (Operation.ADD, ["new"]),
    ]


def test_when_a_pod_was_seen_stays() -> None:
    table = merge("api", None, [pod("u")], "first").table

    merged = merge("api", table, [pod("u", labels={"a": "b"})], "second")

    assert merged.changes[0].pods[0].annotations["kubernetes.io/config.seen"] == "first"


def test_a_pod_that_a_kubelet_hands_on_keeps_its_source() -> None:
    theirs = pod("u", annotations={"kubernetes.io/config.source": "file"})

    for source, kept in (("kubelet", "file"), ("api", "api")):
        merged = merge(source, None, [theirs], "t")
        assert merged.table["u"].source == kept
    assert merge("kubelet", None, [pod("u")], "t").table["u"].source == "kubelet"


_PODS = st.builds(
    pod,
    st.sampled_from("uvw"),
    st.sampled_from("ab"),
    labels=st.sampled_from([{}, {"a": "b"}]),
    deletionTimestamp=st.sampled_from([None, "2026-01-02T03:04:05Z"]),
)


@given(st.lists(st.lists(_PODS, max_size=4, unique_by=lambda p: p.uid), max_size=5))
def test_playing_the_changes_gives_the_table(sets: list[list[AgentPod]]) -> None:
    table: Table | None = None
    played: dict[str, AgentPod] = {}
    for pods in sets:
        before: Any = copy.deepcopy([dict(p.document) for p in pods])
        merged = merge("api", table, pods, "t")
        assert [dict(p.document) for p in pods] == before

        for change in merged.changes:
            for changed in change.pods:
                if change.operation is Operation.REMOVE:
                    del played[changed.uid]
                else:
                    assert (change.operation is Operation.ADD) == (changed.uid not in played)
                    played[changed.uid] = changed
        table = merged.table
        assert played == table
        assert len(table) + len(merged.duplicates) == len(pods)
