"""What a provider of the SDK does about pods that its books have lost, or the record has."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import grpc
import pytest
from tests.unit.client.dongles import DONGLE, Dongles, pod

from numalign.v1 import hint_provider_pb2 as hp
from numalign.v1 import types_pb2 as pb
from numalign_client.sdk import CannotAllocate, HintProviderServicer, SqliteStore

CONTEXT = cast("grpc.ServicerContext", None)
"""Nothing here is aborted."""


class Particular(Dongles):
    """d1 was unplugged."""

    def take_back(self, pod_uid: str, resource: str, ids: Sequence[str]) -> None:
        super().take_back(pod_uid, resource, ids)
        if "d1" in ids:
            raise CannotAllocate("d1 is not plugged in")


def given(container: str, *ids: str, provider: str = "dongles") -> pb.ContainerAllocation:
    """What a container was given, as it is recorded."""
    device = pb.DeviceAllocation(resource=DONGLE, ids=ids, provider=provider)
    return pb.ContainerAllocation(container=container, devices=[device])


def recorded(
    uid: str, *allocations: pb.ContainerAllocation, finished: Sequence[str] = ()
) -> hp.RecordedPod:
    return hp.RecordedPod(pod_uid=uid, allocations=allocations, finished_containers=finished)


def told(
    servicer: HintProviderServicer, *pods: hp.RecordedPod, active: Sequence[str] = (), **more: Any
) -> hp.HintProviderReconcileResponse:
    request = hp.HintProviderReconcileRequest(
        active_pods=[hp.ActivePod(pod_uid=uid) for uid in (*(p.pod_uid for p in pods), *active)],
        recorded_pods=pods,
        sources_ready=True,
        with_holdings=True,
    )
    request.MergeFrom(hp.HintProviderReconcileRequest(**more))
    return servicer.Reconcile(request, CONTEXT)


def held(answer: hp.HintProviderReconcileResponse) -> dict[str, dict[str, list[str]]]:
    """Ids by container by pod."""
    return {
        each.pod_uid: {a.container: list(a.devices[0].ids) for a in each.allocations}
        for each in answer.holdings.pods
    }


def test_what_was_lost_is_held_again_and_put_into_force() -> None:
    provider = Dongles()
    servicer = HintProviderServicer(provider)
    empty = told(servicer, active=["p"])
    answer = told(
        servicer, recorded("p", given("c0", "d1"), pb.ContainerAllocation(container="c1"))
    )

    assert list(empty.unknown_pod_uids) == ["p"]
    assert held(answer) == {"p": {"c0": ["d1"]}}
    assert list(answer.unknown_pod_uids) == []
    assert list(answer.lost) == []
    assert provider.heard == [("committed", "p")]
    assert provider.taken(DONGLE) == {"d1"}


def test_it_is_durable_where_there_is_a_state_file(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "state.db")
    told(HintProviderServicer(Dongles(), store), recorded("p", given("c0", "d1")))
    store.close()
    store = SqliteStore(tmp_path / "state.db")
    answer = told(HintProviderServicer(Dongles(), store), active=["p"])
    store.close()

    assert held(answer) == {"p": {"c0": ["d1"]}}


@pytest.mark.parametrize(
    ("allocation", "finished"),
    [
        pytest.param(given("c0", "d1", provider="others"), (), id="of-another-provider"),
        pytest.param(given("c0", "d1", provider=""), (), id="of-the-device-provider"),
        pytest.param(given("i0", "d1"), ("i0",), id="given-back-since"),
    ],
)
def test_what_is_not_its_own_is_left_alone(
    allocation: pb.ContainerAllocation, finished: Sequence[str]
) -> None:
    provider = Dongles()
    answer = told(HintProviderServicer(provider), recorded("p", allocation, finished=finished))

    assert held(answer) == {}
    assert list(answer.lost) == []
    assert provider.heard == []


def test_what_a_pod_holds_stays_as_it_is() -> None:
    servicer = HintProviderServicer(Dongles())
    told(servicer, recorded("p", given("c0", "d1")))
    answer = told(servicer, recorded("p", given("c0", "d2"), given("c1", "d0")))

    assert held(answer) == {"p": {"c0": ["d1"], "c1": ["d0"]}}


@pytest.mark.parametrize(
    ("provider", "why"),
    [
        pytest.param(Dongles(), f"{DONGLE} d1 held by another pod", id="given-to-another"),
        pytest.param(Particular(), "d1 is not plugged in", id="as-the-author-says"),
    ],
)
def test_what_cannot_be_had_is_said(provider: Dongles, why: str) -> None:
    servicer = HintProviderServicer(provider)
    first = recorded("p", given("c0", "d1" if type(provider) is Dongles else "d0"))
    answer = told(servicer, first, recorded("q", given("c0", "d1", "d2"), given("c1", "d2")))

    assert held(answer)["q"] == {"c1": ["d2"]}
    assert list(answer.unknown_pod_uids) == []
    assert list(answer.lost) == [hp.LostAllocation(pod_uid="q", container="c0", message=why)]


def test_without_being_asked_nothing_is_told() -> None:
    request = hp.HintProviderReconcileRequest()
    assert not HintProviderServicer(Dongles()).Reconcile(request, CONTEXT).HasField("holdings")


@pytest.mark.parametrize(
    ("record_lost", "expected"),
    [
        pytest.param(True, {"p": {"c0": ["d0"]}}, id="nobody-knows"),
        pytest.param(False, {}, id="presumed-aborted"),
    ],
)
def test_what_was_prepared_when_the_record_was_lost_stands(
    record_lost: bool, expected: dict[str, Any]
) -> None:
    servicer = HintProviderServicer(Dongles())
    servicer.Allocate(
        hp.AllocateRequest(
            admission_id="a",
            pod=pod("p", 1).SerializeToString(),
            container="c0",
            affinity=pb.Hint(mask=1),
            last=True,
        ),
        CONTEXT,
    )
    request = hp.HintProviderReconcileRequest(record_lost=record_lost, with_holdings=True)

    assert held(servicer.Reconcile(request, CONTEXT)) == expected
