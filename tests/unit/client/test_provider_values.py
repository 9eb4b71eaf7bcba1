"""Amounts, messages and the state file of simple providers."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.unit.client.dongles import DONGLE, Dongles, pod

from numalign.kube.core.v1 import core_pb2
from numalign.v1 import types_pb2 as pb
from numalign_client.provider.amounts import requested, whole_pod
from numalign_client.provider.messages import allocation, hint_list, nodes_of
from numalign_client.provider.store import SqliteStore, StateFileError, StoredPart


@pytest.mark.parametrize(
    ("requests", "limits", "expected"),
    [
        pytest.param({}, {}, 0, id="nothing"),
        pytest.param({"r": "2"}, {"r": "3"}, 2, id="request-before-limit"),
        pytest.param({}, {"r": "3"}, 3, id="limit"),
        pytest.param({"r": "1500m"}, {}, 2, id="rounded-up"),
        pytest.param({"other": "5"}, {}, 0, id="another-resource"),
    ],
)
def test_requested(requests: dict[str, str], limits: dict[str, str], expected: int) -> None:
    container = core_pb2.Container()
    for target, amounts in (
        (container.resources.requests, requests),
        (container.resources.limits, limits),
    ):
        for name, amount in amounts.items():
            target[name].string = amount

    assert requested(container, "r") == expected


def test_an_amount_that_is_none() -> None:
    container = core_pb2.Container()
    container.resources.limits["r"].string = "many"
    with pytest.raises(ValueError, match=r"\[r\]"):
        requested(container, "r")


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        pytest.param(pod("p", 1, 2), 3, id="app-containers-together"),
        pytest.param(pod("p", 1, init=(3, 2)), 3, id="init-containers-one-by-one"),
        pytest.param(pod("p", 0), 0, id="nothing"),
    ],
)
def test_the_peak_of_a_pod(message: core_pb2.Pod, expected: int) -> None:
    assert requested(whole_pod(message, (DONGLE,)), DONGLE) == expected


def test_sidecars_run_beside_what_comes_after_them() -> None:
    message = pod("p", 2, init=(4, 1, 4))
    message.spec.init_containers[1].restart_policy = "Always"

    assert requested(whole_pod(message, ("example.com/*",)), DONGLE) == 5


@pytest.mark.parametrize(
    ("hints", "expected"),
    [
        pytest.param(None, pb.HintList(kind=pb.HintList.KIND_NO_PREFERENCE), id="anywhere"),
        pytest.param((), pb.HintList(kind=pb.HintList.KIND_IMPOSSIBLE), id="nowhere"),
        pytest.param(
            [({0, 63}, True), (None, False)],
            pb.HintList(
                kind=pb.HintList.KIND_HINTS,
                masks=[1 | 1 << 63, 0],
                preferred=[True, False],
                has_affinity=[True, False],
            ),
            id="one-without-affinity",
        ),
    ],
)
def test_hints(hints: Sequence[tuple[set[int] | None, bool]] | None, expected: pb.HintList) -> None:
    assert hint_list(hints) == expected


def test_a_node_that_no_mask_can_hold() -> None:
    with pytest.raises(ValueError, match="64"):
        hint_list([({64}, True)])


def test_nodes_of_a_hint() -> None:
    assert nodes_of(pb.Hint(mask=5)) == frozenset({0, 2})
    assert nodes_of(pb.Hint()) is None


def test_plain_ids_have_no_node() -> None:
    held = allocation("c", {"r": ("b", "a")})

    assert held == pb.ContainerAllocation(
        container="c",
        devices=[
            pb.DeviceAllocation(
                resource="r",
                ids=["a", "b"],
                by_numa_node=[pb.NumaDevices(numa_node=-1, ids=["a", "b"])],
                edits=pb.ContainerEdits(),
            )
        ],
    )


def test_text_is_no_list_of_ids() -> None:
    with pytest.raises(TypeError, match="r: a sequence"):
        allocation("c", {"r": "ab"})


def test_a_provider_has_no_books_before_it_is_served() -> None:
    with pytest.raises(RuntimeError, match="not served"):
        Dongles().taken(DONGLE)


def test_a_file_keeps_parts_in_order(tmp_path: Path) -> None:
    held = (pb.ContainerAllocation(container="c"),)
    store = SqliteStore(tmp_path / "s.db")
    store.put(StoredPart("q", "a2", held))
    store.put(StoredPart("p", "a1", held))
    store.settle("p", "a1", held)
    store.close()

    assert SqliteStore(tmp_path / "s.db").load() == (
        StoredPart("q", "a2", held),
        StoredPart("p", "", held),
    )


@pytest.mark.parametrize("version", [pytest.param(2, id="newer"), pytest.param(None, id="text")])
def test_a_foreign_file_is_refused(tmp_path: Path, version: int | None) -> None:
    path = tmp_path / "s.db"
    if version is None:
        path.write_text("this is no database, and long enough to be looked at as one" * 20)
    else:
        database = sqlite3.connect(path)
        database.execute(f"PRAGMA user_version = {version}")
        database.close()
    with pytest.raises(StateFileError, match=str(path)):
        SqliteStore(path)


def test_a_file_is_closed_between_two_uses(tmp_path: Path) -> None:
    """A server that stops closes it while calls may still be in hand."""
    for round_ in range(20):
        store = SqliteStore(tmp_path / f"{round_}.db")
        store.put(StoredPart("u", "a", ()))
        begun = threading.Event()

        def use(store: SqliteStore = store, begun: threading.Event = begun) -> str:
            try:
                while True:
                    store.settle("u", "a", ())
                    begun.set()
            except sqlite3.ProgrammingError as error:
                return str(error)

        with ThreadPoolExecutor(2) as threads:
            users = [threads.submit(use) for _ in range(2)]
            begun.wait()
            store.close()
            assert {user.result() for user in users} == {"Cannot operate on a closed database."}
