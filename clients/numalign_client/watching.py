"""How a watch goes on after it was interrupted: which events it still owes, and from where.

Pure, and shared by both clients. A watch is resumed after the last revision seen. Where the
service no longer has that history it begins anew, and what the first picture no longer holds
is reported as released, so that whoever follows the events is always right.
"""

from __future__ import annotations

from collections.abc import Iterator

from grpc import StatusCode

from numalign.v1 import admission_pb2 as ad
from numalign.v1.node_resources_pb2 import NodeResources
from numalign_client.errors import AdmissionError, HistoryGone

FIRST_WAIT = 0.1
LONGEST_WAIT = 5.0

_INTERRUPTIONS = frozenset({StatusCode.UNAVAILABLE, StatusCode.UNKNOWN, StatusCode.INTERNAL})


class WatchCursor:
    """Where one watch stands. `revision` is what to resume from; 0 begins with the picture."""

    def __init__(self, from_revision: int = 0) -> None:
        self.revision = from_revision
        self._pods: set[str] = set()
        self._listed: set[str] | None = set() if from_revision == 0 else None
        self._wait = FIRST_WAIT

    def events(self, event: ad.WatchAssignmentsResponse) -> Iterator[ad.WatchAssignmentsResponse]:
        """The event as the caller gets it, after releases that it stands for."""
        self._wait = FIRST_WAIT
        kind = event.WhichOneof("event")
        if kind == "existing":
            self._pods.add(event.existing.pod_uid)
            if self._listed is not None:
                self._listed.add(event.existing.pod_uid)
        elif kind == "changed":
            self._pods.add(event.changed.pod_uid)
        elif kind == "released":
            self._pods.discard(event.released.pod_uid)
        elif kind == "synced" and self._listed is not None:
            for pod_uid in sorted(self._pods - self._listed):
                released = ad.Released(pod_uid=pod_uid)
                yield ad.WatchAssignmentsResponse(released=released, revision=event.revision)
            self._pods = self._listed
            self._listed = None
        yield event
        if self._listed is None:
            # Half a picture is no place to resume from.
            self.revision = event.revision

    def interrupted(self, error: AdmissionError | None) -> float:
        """The stream ended, with `error` or (None) without: seconds to wait before resuming.

        Raises the error if asking again cannot help.
        """
        if isinstance(error, HistoryGone):
            if self.revision == 0:
                raise error
            self.revision = 0
        elif error is not None and error.code not in _INTERRUPTIONS:
            raise error
        if self.revision == 0:
            self._listed = set()
        wait, self._wait = self._wait, min(2 * self._wait, LONGEST_WAIT)
        return wait


class PictureCursor:
    """Where a watch of whole pictures stands: each is told only if it is another than the last."""

    def __init__(self) -> None:
        self._told: NodeResources | None = None
        self._wait = FIRST_WAIT

    def is_new(self, picture: NodeResources) -> bool:
        """Whether the caller is owed this picture; it counts as told then."""
        self._wait = FIRST_WAIT
        if picture == self._told:
            return False
        self._told = picture
        return True

    def interrupted(self, error: AdmissionError | None) -> float:
        """As `WatchCursor.interrupted`."""
        if error is not None and error.code not in _INTERRUPTIONS:
            raise error
        wait, self._wait = self._wait, min(2 * self._wait, LONGEST_WAIT)
        return wait
