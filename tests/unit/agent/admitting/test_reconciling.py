"""Telling Admission which pods there are, and hearing what it has lost (DES-6)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from grpc import StatusCode
from tests.unit.agent.admitting.admission_double import AdmissionDouble, trouble

from numalign_agent.admitting.calls import RunningContainer
from numalign_agent.admitting.reconciling import NodePicture, Reconciler

PICTURE = NodePicture(frozenset({"a", "b"}), (RunningContainer("c1", "a", "c"),))


class Admitting:
    def __init__(self) -> None:
        self.admitted = frozenset({"a", "b", "gone"})
        self.undecided = {"b"}
        self.did: list[Any] = []

    def is_undecided(self, uid: str) -> bool:
        return uid in self.undecided

    def released(self, uid: str) -> None:
        self.did.append(("released", uid))

    def add(self, uids: Iterable[str]) -> None:
        self.did.append(("ask", *uids))


class Calls(AdmissionDouble):
    begun_anew = 0

    async def begin_anew(self) -> None:
        self.begun_anew += 1
        self.revision = 1


def reconciler(calls: Calls, admitting: Admitting, *, ready: bool = True) -> Reconciler:
    return Reconciler(
        calls,  # type: ignore[arg-type]
        admitting,  # type: ignore[arg-type]
        lambda: PICTURE,
        lambda: ready,
        every=60.0,
    )


async def test_what_is_active_is_told_up_to_what_is_known() -> None:
    calls = Calls()
    calls.revision = 7
    await reconciler(calls, Admitting(), ready=False).reconcile()

    assert calls.asked == [("reconcile", ("a", "b"), 7, False)]


async def test_what_was_released_and_what_was_lost() -> None:
    calls, admitting = Calls(), Admitting()
    calls.reconciliation.released_pod_uids.append("gone")
    calls.reconciliation.unknown_pod_uids.extend(["a", "b", "never admitted"])
    await reconciler(calls, admitting).reconcile()

    assert admitting.did == [("released", "gone"), ("ask", "a")]


async def test_a_service_that_has_lost_its_record_counts_from_another_beginning() -> None:
    calls = Calls()
    calls.revision = 9
    calls.failing.append(trouble(StatusCode.INVALID_ARGUMENT, "as_of_revision"))
    await reconciler(calls, Admitting())._reconcile_or_begin_anew()

    assert calls.begun_anew == 1
    assert calls.asked == [("reconcile", ("a", "b"), 1, True)]
