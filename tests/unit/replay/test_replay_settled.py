"""Books without the pods that are not admitted."""

from __future__ import annotations

from typing import Any

from numalign.replay.settled import PodParts, settled


def node(reserved: int, count: int, cells: list[int]) -> dict[str, Any]:
    return {
        "number_of_assignments": count,
        "cells": cells,
        "memory": {"memory": {"reserved": reserved, "free": 100 - reserved}},
    }


def books(machine: dict[str, Any], memory: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "default_cpus": "0",
        "cpu_assignments": {},
        "memory_assignments": memory,
        "machine_memory_state": machine,
        "pod_devices": {},
        "device_allocated": {},
        **more,
    }


def block(nodes: list[int], size: int) -> dict[str, Any]:
    return {"type": "memory", "numa_affinity": nodes, "size": size}


def test_a_refused_pod_gives_back_what_it_holds() -> None:
    left = books(
        {"0": node(30, 2, [0])},
        {"a": {"c": [block([0], 10)]}, "b": {"c": [block([0], 20)]}},
        default_cpus="0,4",
        cpu_assignments={"a": {"c": "1"}, "b": {"c": "2", "d": "3"}},
        pod_devices={"a": {"c": {"gpu": ["g0"]}}, "b": {"c": {"gpu": ["g1"]}}},
        device_allocated={"gpu": ["g0", "g1"]},
    )
    right = books(
        {"0": node(10, 1, [0])},
        {"a": {"c": [block([0], 10)]}},
        default_cpus="0,2-4",
        cpu_assignments={"a": {"c": "1"}},
        pod_devices={"a": {"c": {"gpu": ["g0"]}}},
        device_allocated={"gpu": ["g0"]},
    )

    recorded, replayed = settled((left, PodParts()), (right, PodParts()), {"a"})

    assert recorded == replayed
    assert recorded["default_cpus"] == "0,2-4"


def test_the_last_user_of_a_group_leaves_single_nodes() -> None:
    left = books(
        {"0": node(9, 1, [0, 1]), "1": node(3, 1, [0, 1])}, {"b": {"c": [block([0, 1], 12)]}}
    )
    right = books({"0": node(0, 0, [0]), "1": node(0, 0, [1])}, {})

    recorded, replayed = settled((left, PodParts()), (right, PodParts()), set())

    assert recorded == replayed
    assert recorded["machine_memory_state"]["several_nodes"] == {
        "memory": {"reserved": 0, "free": 200}
    }


def test_a_pod_managed_as_a_whole_gives_back_its_own_set_and_blocks() -> None:
    parts = PodParts()
    parts.note("b", {"pod_cpus": "2-5", "pod_memory_blocks": [block([0], 20)]})
    left = books(
        {"0": node(20, 1, [0])},
        {"b": {"c": [block([0], 5)]}},
        cpu_assignments={"b": {"c": "2"}},
    )
    right = books({"0": node(0, 0, [0])}, {}, default_cpus="0,2-5")

    recorded, replayed = settled((left, parts), (right, PodParts()), set())

    assert recorded == replayed


def test_what_an_admitted_pod_holds_still_counts() -> None:
    left = books({"0": node(10, 1, [0])}, {"a": {"c": [block([0], 10)]}})
    right = books({"0": node(0, 0, [0])}, {})

    recorded, replayed = settled((left, PodParts()), (right, PodParts()), {"a"})

    assert recorded["memory_assignments"] != replayed["memory_assignments"]
    assert recorded["machine_memory_state"] != replayed["machine_memory_state"]
