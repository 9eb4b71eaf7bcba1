"""Static pods of one name run one after the other, in order of arrival (WRK-11)."""

from __future__ import annotations


class StaticTurns:
    """Who of the static pods of each full name is at its turn."""

    def __init__(self) -> None:
        self._lines: dict[str, list[str]] = {}

    def arrive(self, full_name: str, pod_uid: str) -> None:
        """A static pod wants to run; it stands in line once."""
        line = self._lines.setdefault(full_name, [])
        if pod_uid not in line:
            line.append(pod_uid)

    def may_start(self, full_name: str, pod_uid: str) -> bool:
        """Whether no other pod of this name is before it."""
        line = self._lines.get(full_name)
        return not line or line[0] == pod_uid

    def leave(self, full_name: str, pod_uid: str) -> str | None:
        """A pod is finished; the UID of the one whose turn it is now, if it was at its turn."""
        line = self._lines.get(full_name, [])
        was_first = line[:1] == [pod_uid]
        if pod_uid in line:
            line.remove(pod_uid)
        if not line:
            self._lines.pop(full_name, None)
            return None
        return line[0] if was_first else None
