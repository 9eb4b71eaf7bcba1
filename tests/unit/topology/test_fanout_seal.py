"""What cannot be undone is done when every provider has agreed, and then one by one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from tests.unit.device.device_world import container, hint, pod

from numalign.errors import Deferred
from numalign.model.ids import AdmissionId
from numalign.provider.messages import deferral_to_message
from numalign.provider.values import AllocationFailure
from numalign.topology.fanout import Fanout
from numalign.topology.provider_handle import ProviderHandle
from numalign.v1 import hint_provider_pb2 as hp
from numalign.v1 import types_pb2 as pb

POD = pod(container("a"), container("b"))
A, B = POD.containers
NOT_YET = Deferred("DevicePluginNotReady", "the plugin is late", 1.5)


@dataclass
class Provider:
    """Stands for a provider's stub: notes what it is asked, answers as set up."""

    name: str
    calls: list[str]
    unsealed: bool = False
    allocate_failure: hp.AllocationFailure | None = None
    seal_failure: hp.AllocationFailure | None = None
    asked: list[Any] = field(default_factory=list)

    async def Allocate(self, request: hp.AllocateRequest, **_: float) -> hp.AllocateResponse:  # noqa: N802 - the contract's
        self.calls.append(f"allocate {self.name} {request.container}")
        self.asked.append(request)
        return hp.AllocateResponse(
            instance_id="i", failure=self.allocate_failure, unsealed=self.unsealed
        )

    async def Seal(self, request: hp.SealRequest, **_: float) -> hp.SealResponse:  # noqa: N802 - the contract's
        self.calls.append(f"seal {self.name} {request.admission_id}")
        return hp.SealResponse(
            instance_id="i",
            failure=self.seal_failure,
            allocations=[pb.ContainerAllocation(container="b", cpus="sealed")],
            plugin_calls=[pb.PluginCall(call="Allocate")],
        )

    async def GetTopologyHints(  # noqa: N802 - the contract's
        self, request: hp.GetTopologyHintsRequest, **_: float
    ) -> hp.GetTopologyHintsResponse:
        self.asked.append(request)
        return hp.GetTopologyHintsResponse(instance_id="i", deferral=deferral_to_message(NOT_YET))


def fanout(*providers: Provider, dry_run: bool = False, one_by_one: bool = False) -> Fanout:
    handles = [
        ProviderHandle(
            name=provider.name,
            endpoint="",
            stub=cast("Any", provider),
            timeout=1.0,
            built_in=True,
            instance_id="i",
        )
        for provider in providers
    ]
    return Fanout(handles, AdmissionId("1"), b"", dry_run=dry_run, one_by_one=one_by_one)


async def allocate(made: Fanout) -> AllocationFailure | None:
    for each, last in ((A, False), (B, True)):
        failure = await made.allocate(POD, each, hint(0), last)
        if failure is not None:
            return failure
    return None


async def test_sealed_after_the_last_allocation_of_all() -> None:
    calls: list[str] = []
    device, cpu = Provider("device", calls, unsealed=True), Provider("cpu", calls)
    made = fanout(device, cpu)

    assert await allocate(made) is None
    assert calls == [
        "allocate device a",
        "allocate cpu a",
        "allocate device b",
        "allocate cpu b",
        "seal device 1",
    ]
    assert made.allocations(POD, {})[1].cpus == "sealed"
    assert [call.call for call in made.plugin_calls] == ["Allocate"]
    assert all(request.seal_later for request in device.asked)
    assert all(request.allocations_when_last for request in device.asked)


async def test_nothing_is_sealed_where_somebody_refuses() -> None:
    calls: list[str] = []
    refusal = hp.AllocationFailure(message="no CPUs")
    cpu = Provider("cpu", calls, allocate_failure=refusal)
    made = fanout(Provider("device", calls, unsealed=True), cpu)

    assert await made.allocate(POD, B, hint(0), True) == AllocationFailure("no CPUs")
    assert calls == ["allocate device b", "allocate cpu b"]


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({"dry_run": True}, id="dry-run"),
        pytest.param({"one_by_one": True}, id="one-by-one"),
    ],
)
async def test_nothing_is_left_to_seal(settings: dict[str, bool]) -> None:
    calls: list[str] = []
    device = Provider("device", calls, unsealed="dry_run" in settings)

    assert await allocate(fanout(device, **settings)) is None
    assert calls == ["allocate device a", "allocate device b"]
    assert [request.seal_later for request in device.asked] == [
        "dry_run" in settings,
        "dry_run" in settings,
    ]
    # One by one a pod that is refused half-way keeps what it was given, and that is told.
    assert [request.allocations_when_last for request in device.asked] == [
        "dry_run" in settings,
        "dry_run" in settings,
    ]


async def test_a_seal_that_fails_is_the_failure_of_the_allocation() -> None:
    calls: list[str] = []
    refusal = hp.AllocationFailure(message="out of order")
    made = fanout(
        Provider("device", calls, unsealed=True, seal_failure=refusal),
        Provider("other", calls, unsealed=True),
    )

    assert await allocate(made) == AllocationFailure("out of order")
    assert calls[-1] == "seal device 1"
    assert [(call.provider, call.container, call.error) for call in made.allocate_calls] == [
        ("device", "a", ""),
        ("other", "a", ""),
        ("other", "b", ""),
        ("device", "b", "out of order"),
    ]


async def test_not_yet_with_hints() -> None:
    with pytest.raises(Deferred) as deferred:
        await fanout(Provider("device", [])).topology_hints(POD, A)

    assert deferred.value.reason == NOT_YET.reason
    assert str(deferred.value) == "the plugin is late"
    assert deferred.value.retry_after == 1.5


async def test_not_yet_with_an_allocation() -> None:
    failure = hp.AllocationFailure(deferral=deferral_to_message(NOT_YET))

    with pytest.raises(Deferred, match="the plugin is late"):
        await fanout(Provider("device", [], allocate_failure=failure)).allocate(
            POD, A, hint(0), False
        )
