"""The servicer around a simple provider, called over gRPC."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from tests.unit.client.dongles import DONGLE, Dongles, pod
from tests.unit.client.provider_calls import Calls, ids

from numalign.v1 import hint_provider_pb2 as hp
from numalign.v1 import types_pb2 as pb
from numalign.v1.hint_provider_pb2_grpc import (
    HintProviderStub,
    add_HintProviderServicer_to_server,
)
from numalign_client.sdk import HintProviderServicer, SqliteStore

grpc_max_workers = 4
"""For pytest-grpc: a watch holds a worker of its own."""


class Replaceable:
    """Hands calls to a servicer that every test makes anew."""

    def __init__(self) -> None:
        self.servicer: HintProviderServicer = HintProviderServicer(Dongles())

    def __getattr__(self, name: str) -> Callable[[Any, grpc.ServicerContext], Any]:
        # Generated code asks for the methods once, when the server is made.
        def call(request: Any, context: grpc.ServicerContext) -> Any:
            return getattr(self.servicer, name)(request, context)

        return call


@pytest.fixture(scope="module")
def grpc_addr() -> str:
    # The fixture of pytest-grpc leaves its socket open, which is a warning here.
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{free.getsockname()[1]}"


@pytest.fixture(scope="module")
def grpc_add_to_server() -> Callable[..., None]:
    return add_HintProviderServicer_to_server


@pytest.fixture(scope="module")
def grpc_servicer() -> Replaceable:
    return Replaceable()


@pytest.fixture(scope="module")
def grpc_stub_cls(grpc_channel: grpc.Channel) -> type[HintProviderStub]:
    return HintProviderStub


@pytest.fixture
def provider(grpc_servicer: Replaceable) -> Dongles:
    provider = Dongles()
    grpc_servicer.servicer = HintProviderServicer(provider)
    return provider


@pytest.fixture
def calls(provider: Dongles, grpc_stub: HintProviderStub) -> Calls:
    return Calls(grpc_stub)


def test_info(calls: Calls) -> None:
    info = calls.stub.GetInfo(hp.GetInfoRequest())

    assert info.name == "dongles"
    assert list(info.resources) == [DONGLE]
    assert info.instance_id == calls.hints("a", pod("p", 1)).instance_id


def test_hints(calls: Calls) -> None:
    hints = calls.hints("a", pod("p", 2)).hints.resources[DONGLE]

    assert hints == pb.HintList(kind=pb.HintList.KIND_HINTS, masks=[1, 3], preferred=[True, False])


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        pytest.param(0, None, id="nothing-of-this-kind"),
        pytest.param(4, pb.HintList(kind=pb.HintList.KIND_IMPOSSIBLE), id="fits-nowhere"),
    ],
)
def test_hints_without_masks(calls: Calls, wanted: int, expected: pb.HintList | None) -> None:
    response = calls.hints("a", pod("p", wanted))

    if expected is None:
        assert not response.HasField("hints")
    else:
        assert response.hints.resources[DONGLE] == expected


def test_pod_hints_ask_for_the_peak(calls: Calls) -> None:
    response = calls.stub.GetPodTopologyHints(
        hp.GetPodTopologyHintsRequest(
            admission_id="a", pod=pod("p", 1, 1, init=(3,)).SerializeToString()
        )
    )

    assert list(response.hints.resources[DONGLE].masks) == [3]


def test_an_admission_that_is_committed(calls: Calls, provider: Dongles) -> None:
    response = calls.allocate("a", pod("p", 2))
    before = list(provider.heard)
    calls.stub.Commit(hp.CommitRequest(admission_id="a"))

    assert ids(response) == {"c0": ["d0", "d1"]}
    assert [
        (n.numa_node, list(n.ids)) for n in response.allocations[0].devices[0].by_numa_node
    ] == [(0, ["d0", "d1"])]
    assert before == []
    assert provider.heard == [("committed", "p")]
    assert list(calls.hints("b", pod("q", 1)).hints.resources[DONGLE].masks) == [2, 3]


def test_a_failure_is_the_authors(calls: Calls) -> None:
    response = calls.allocate("a", pod("p", 2), mask=2)

    assert response.failure == hp.AllocationFailure(reason="DongleError", message="too few dongles")


def test_what_makes_no_sense_and_what_is_too_early(calls: Calls) -> None:
    assert calls.hints("a", pod("p", 13)).fault == "13 dongles make no sense"
    assert calls.allocate("a", pod("p", 13)).failure.fault == "13 dongles make no sense"
    for deferral in (
        calls.hints("a", pod("p", 14)).deferral,
        calls.allocate("a", pod("p", 14)).failure.deferral,
    ):
        assert (deferral.reason, deferral.message) == ("Counting", "dongles are being counted")
        assert deferral.retry_after.ToMilliseconds() == 2500


def test_an_abort_takes_a_prepared_part_back(calls: Calls, provider: Dongles) -> None:
    calls.allocate("a", pod("p", 2))
    calls.stub.Abort(hp.AbortRequest(admission_id="a"))

    assert provider.heard == [("released", "p")]
    assert ids(calls.allocate("b", pod("q", 2))) == {"c0": ["d0", "d1"]}


def test_a_dry_run_prepares_nothing(calls: Calls, provider: Dongles) -> None:
    calls.allocate("a", pod("p", 2), dry_run=True)
    calls.stub.Commit(hp.CommitRequest(admission_id="a"))

    assert provider.heard == []
    assert ids(calls.allocate("b", pod("q", 2))) == {"c0": ["d0", "d1"]}


def test_containers_of_one_admission_see_each_other(calls: Calls) -> None:
    both = pod("p", 1, 1)
    calls.allocate("a", both, "c0", last=False)

    assert ids(calls.allocate("a", both, "c1")) == {"c0": ["d0"], "c1": ["d1"]}


def test_another_admission_ends_a_tentative_one(calls: Calls) -> None:
    calls.allocate("a", pod("p", 2, 1), last=False)

    assert ids(calls.allocate("b", pod("q", 2))) == {"c0": ["d0", "d1"]}


def test_a_whole_pod(calls: Calls) -> None:
    response = calls.stub.AllocatePod(
        hp.AllocatePodRequest(
            admission_id="a",
            pod=pod("p", 1, 2).SerializeToString(),
            affinity=pb.Hint(mask=3),
            last=True,
        )
    )

    assert ids(response) == {"c0": ["d0"], "c1": ["d1", "d2"]}


def test_who_holds_something_keeps_it_when_asked_again(calls: Calls) -> None:
    calls.admit("a", pod("p", 2))
    again = pod("p", 2)

    assert not calls.hints("b", again).HasField("hints")
    assert ids(calls.allocate("b", again)) == {"c0": ["d0", "d1"]}


def test_sealing_makes_the_part_durable(calls: Calls, provider: Dongles) -> None:
    calls.allocate("a", pod("p", 1), last=False)
    sealed = calls.stub.Seal(hp.SealRequest(admission_id="a", pod=pod("p", 1).SerializeToString()))
    calls.stub.Commit(hp.CommitRequest(admission_id="a"))

    assert ids(sealed) == {"c0": ["d0"]}
    assert provider.heard == [("committed", "p")]


def test_release(calls: Calls, provider: Dongles) -> None:
    calls.admit("a", pod("p", 3), mask=3)
    calls.stub.Release(hp.HintProviderReleaseRequest(pod_uids=["p", "stranger"]))

    assert provider.heard[1:] == [("released", "p"), ("released", "stranger")]
    assert ids(calls.allocate("b", pod("q", 1))) == {"c0": ["d0"]}


def test_a_release_that_fails_keeps_the_books(calls: Calls, provider: Dongles) -> None:
    calls.admit("a", pod("p", 2))
    provider.fails_to_release = True
    with pytest.raises(grpc.RpcError):
        calls.stub.Release(hp.HintProviderReleaseRequest(pod_uids=["p"]))

    provider.fails_to_release = False
    assert list(calls.reconcile(()).released_pod_uids) == ["p"]
    assert provider.heard[1:] == [("released", "p")]


def test_init_containers_give_back_when_they_have_ended(calls: Calls) -> None:
    message = pod("p", 1, init=(1, 1))
    message.spec.init_containers[1].restart_policy = "Always"
    for container in ("i0", "i1"):
        calls.allocate("a", message, container, mask=3, last=False)
    calls.allocate("a", message, "c0", mask=3)
    calls.stub.Commit(hp.CommitRequest(admission_id="a"))

    def add(container: str) -> dict[str, list[str]]:
        return ids(
            calls.stub.AddContainer(
                hp.HintProviderAddContainerRequest(
                    pod=message.SerializeToString(), container=container, container_id="x"
                )
            )
        )

    assert add("i0") == {"i0": ["d0"], "i1": ["d1"], "c0": ["d2"]}
    assert add("i1") == {"i1": ["d1"], "c0": ["d2"]}
    assert add("c0") == {"i1": ["d1"], "c0": ["d2"]}


def test_a_removed_container_gives_back(calls: Calls) -> None:
    calls.admit("a", pod("p", 2))
    calls.stub.RemoveContainer(
        hp.HintProviderRemoveContainerRequest(pod_uid="p", container="c0", container_id="x")
    )

    assert ids(calls.allocate("b", pod("q", 2))) == {"c0": ["d0", "d1"]}


def test_preparing_a_container(calls: Calls) -> None:
    calls.admit("a", pod("p", 1))
    prepared = calls.stub.PrepareContainer(
        hp.HintProviderPrepareContainerRequest(pod=pod("p", 1).SerializeToString(), container="c0")
    )

    assert list(prepared.allocation.devices[0].ids) == ["d0"]
    assert not prepared.HasField("cpus")


def test_a_picture_releases_and_knows_strangers(calls: Calls, provider: Dongles) -> None:
    calls.admit("a", pod("p", 1))
    calls.admit("b", pod("q", 1))
    waiting = calls.reconcile(("q", "stranger"), ready=False)
    ready = calls.reconcile(("q", "stranger"))

    assert list(waiting.released_pod_uids) == []
    assert list(ready.released_pod_uids) == ["p"]
    assert list(ready.unknown_pod_uids) == ["stranger"]
    assert provider.heard[2:] == [("released", "p")]


def test_a_restart_keeps_prepared_parts_until_told(
    grpc_servicer: Replaceable, grpc_stub: HintProviderStub, tmp_path: Path
) -> None:
    calls = Calls(grpc_stub)
    path = tmp_path / "dongles.db"
    first = SqliteStore(path)
    grpc_servicer.servicer = HintProviderServicer(Dongles(), first)
    calls.admit("a", pod("p", 1))
    calls.allocate("b", pod("q", 1))
    calls.stub.Commit(hp.CommitRequest(admission_id="unknown"))
    first.close()

    second = SqliteStore(path)
    provider = Dongles()
    grpc_servicer.servicer = HintProviderServicer(provider, second)
    with pytest.raises(grpc.RpcError) as caught:
        calls.hints("c", pod("r", 1))
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    assert "waits to be told" in str(caught.value.details())
    outcome = calls.reconcile(("p", "q"), ("a", "b"))

    assert list(outcome.released_pod_uids) == list(outcome.unknown_pod_uids) == []
    assert provider.heard == [("committed", "q")]
    assert ids(calls.allocate("c", pod("r", 1), mask=3)) == {"c0": ["d2"]}
    second.close()


def test_a_restart_drops_what_was_not_committed(
    grpc_servicer: Replaceable, grpc_stub: HintProviderStub, tmp_path: Path
) -> None:
    calls = Calls(grpc_stub)
    path = tmp_path / "dongles.db"
    first = SqliteStore(path)
    grpc_servicer.servicer = HintProviderServicer(Dongles(), first)
    calls.allocate("b", pod("q", 1))
    first.close()

    second = SqliteStore(path)
    provider = Dongles()
    grpc_servicer.servicer = HintProviderServicer(provider, second)
    outcome = calls.reconcile((), (), ready=False)

    assert list(outcome.released_pod_uids) == ["q"]
    assert provider.heard == [("released", "q")]
    assert ids(calls.allocate("c", pod("r", 2))) == {"c0": ["d0", "d1"]}
    second.close()


def test_a_watch_tells_changes(calls: Calls) -> None:
    watch: Any = calls.stub.Watch(hp.WatchRequest())
    first = next(watch)
    calls.allocate("a", pod("p", 1))
    second = next(watch)
    watch.cancel()

    assert list(first.resources) == [DONGLE]
    assert second.revision == first.revision + 1
    assert calls.stub.GetState(hp.GetStateRequest()).revision == second.revision


def test_an_unknown_container_is_named(calls: Calls) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        calls.hints("a", pod("p", 1), "nobody")

    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert 'has no container "nobody"' in str(caught.value.details())


@pytest.fixture(autouse=True)
def _one_servicer_per_test(grpc_servicer: Replaceable) -> Iterator[None]:
    yield
    grpc_servicer.servicer = HintProviderServicer(Dongles())
