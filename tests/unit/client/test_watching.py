"""Where a watch resumes."""

from typing import Any

import pytest
from grpc import StatusCode

from numalign.v1 import admission_pb2 as ad
from numalign.v1 import types_pb2 as pb
from numalign_client.errors import HistoryGone, NotAdmitted, ServiceUnavailable
from numalign_client.watching import LONGEST_WAIT, WatchCursor

DOWN = ServiceUnavailable(StatusCode.UNAVAILABLE, "down")
GONE = HistoryGone(StatusCode.OUT_OF_RANGE, "gone")


def existing(uid: str, revision: int) -> ad.WatchAssignmentsResponse:
    return ad.WatchAssignmentsResponse(existing=pb.AdmissionRecord(pod_uid=uid), revision=revision)


def synced(revision: int) -> ad.WatchAssignmentsResponse:
    return ad.WatchAssignmentsResponse(synced=ad.Synced(), revision=revision)


def released(uid: str, revision: int) -> ad.WatchAssignmentsResponse:
    return ad.WatchAssignmentsResponse(released=ad.Released(pod_uid=uid), revision=revision)


def run(
    cursor: WatchCursor, *events: ad.WatchAssignmentsResponse
) -> list[ad.WatchAssignmentsResponse]:
    return [owed for event in events for owed in cursor.events(event)]


def test_half_a_picture_is_asked_for_again() -> None:
    cursor = WatchCursor()
    run(cursor, existing("a", 3))
    cursor.interrupted(DOWN)

    assert cursor.revision == 0
    assert run(cursor, existing("b", 4), synced(4)) == [
        existing("b", 4),
        released("a", 4),
        synced(4),
    ]
    assert cursor.revision == 4


def test_a_released_pod_is_released_once() -> None:
    cursor = WatchCursor()
    run(cursor, existing("a", 3), synced(3), released("a", 4))
    cursor.interrupted(GONE)

    assert run(cursor, synced(9)) == [synced(9)]


def test_waits_grow_and_start_again() -> None:
    cursor = WatchCursor(5)
    waits = [cursor.interrupted(DOWN) for _ in range(8)]

    assert waits == sorted(waits)
    assert waits[-1] == LONGEST_WAIT
    run(cursor, released("a", 6))
    assert cursor.interrupted(None) == waits[0]
    assert cursor.revision == 6


@pytest.mark.parametrize(
    ("revision", "error"),
    [
        pytest.param(5, NotAdmitted(StatusCode.NOT_FOUND, "x"), id="not-an-interruption"),
        pytest.param(0, GONE, id="nothing-left-to-try"),
    ],
)
def test_what_cannot_be_mended_is_raised(revision: Any, error: Any) -> None:
    with pytest.raises(type(error)):
        WatchCursor(revision).interrupted(error)
