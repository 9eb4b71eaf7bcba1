"""Which DRA drivers of the node have been away for so long that what they offer is gone. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

AWAY_SECONDS = 30.0
"""How long a driver may be away (DRA-9): it is, while it is updated."""


@dataclass(frozen=True, slots=True)
class AbsentDrivers:
    """What is known of the drivers. Times are in seconds of any clock that only goes forward.

    `since` says since when drivers that were connected are away. `began` is when it was first
    looked, None: not yet; what `unknown` ones have left behind, who were not seen at all, is gone
    when as much time has passed since then.
    """

    connected: frozenset[str] = frozenset()
    since: Mapping[str, float] = field(default_factory=dict)
    began: float | None = None
    unknown: bool = True

    def looked(self, connected: Collection[str], now: float) -> AbsentDrivers:
        """These drivers are connected now."""
        here = frozenset(connected)
        since = {name: at for name, at in self.since.items() if name not in here}
        since |= {name: now for name in self.connected - here if name not in since}
        began = now if self.began is None else self.began
        return replace(self, connected=here, since=since, began=began)

    def gone(self, now: float) -> frozenset[str]:
        """The drivers that have been away for too long."""
        return frozenset(name for name, at in self.since.items() if now - at >= AWAY_SECONDS)

    def all_are_gone(self, now: float) -> bool:
        """Whether whoever has not been seen by now is gone too."""
        return self.unknown and self.began is not None and now - self.began >= AWAY_SECONDS

    def wiped(self, drivers: Collection[str], *, all_: bool) -> AbsentDrivers:
        """Nothing is left of these drivers, and with `all_` of any that is not connected."""
        since = {name: at for name, at in self.since.items() if name not in drivers}
        return replace(self, since=since, unknown=self.unknown and not all_)
