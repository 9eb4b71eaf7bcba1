"""The durable form of the state."""

from __future__ import annotations

import json
from dataclasses import replace

from tests.unit.memory.memory_builders import block, books

from numalign.memory.machine_state import UINT64, Table
from numalign.memory.state import MemoryState, StoredMemory, decode, encode
from numalign.model.ids import NumaId, PodUid
from numalign.model.numa_mask import mask_of

FULL = MemoryState(
    machine=books(2),
    containers={PodUid("u"): {"c": (block(5, 0, 1),), "empty": ()}},
    pods={PodUid("u"): (block(9, 0),)},
    reusable={PodUid("u"): {(mask_of((0,)), "memory"): 3}},
)


def test_everything_but_the_reusable_bytes_comes_back() -> None:
    stored = decode(encode(FULL, policy="Static", pod_entries=True))

    assert isinstance(stored, StoredMemory)
    assert (stored.policy, stored.pod_entries) == ("Static", True)
    assert stored.to_state() == replace(FULL, reusable={})


def test_the_largest_amount_survives() -> None:
    table = Table(total=UINT64, system_reserved=0, allocatable=UINT64, reserved=0, free=UINT64)
    one = books(1)[NumaId(0)]
    state = MemoryState(machine={NumaId(0): replace(one, tables={"memory": table})})

    assert decode(encode(state, policy="Static", pod_entries=False)).to_state() == state


def test_it_is_plain_json() -> None:
    document = json.loads(encode(FULL, policy="Static", pod_entries=False))

    assert document["layout"] == 1
    assert document["machine"]["0"]["cells"] == [0]
    assert document["containers"]["u"]["c"] == [
        {"numa_nodes": [0, 1], "resource": "memory", "size": 5}
    ]


def test_an_entry_without_blocks_differs_from_none() -> None:
    assert FULL.blocks(PodUid("u"), "empty") == ()
    assert FULL.blocks(PodUid("u"), "other") is None
    assert FULL.blocks(PodUid("v"), "c") is None
    assert FULL.with_containers(PodUid("u"), {}).containers == {}
