"""When which pod is looked at again by itself (LOOP-5). A UID stands in it once."""

from __future__ import annotations


class WorkQueue:
    """Due times by pod UID, in seconds of one clock."""

    def __init__(self) -> None:
        self._due: dict[str, float] = {}

    def put(self, pod_uid: str, due: float) -> None:
        """Look at the pod at `due`, not when it was going to be looked at before."""
        self._due[pod_uid] = due

    def drop(self, pod_uid: str) -> None:
        """Do not look at the pod by itself."""
        self._due.pop(pod_uid, None)

    def take_due(self, now: float) -> tuple[str, ...]:
        """The pods whose time is strictly past; they are taken out."""
        due = tuple(uid for uid, at in self._due.items() if at < now)
        for uid in due:
            del self._due[uid]
        return due
