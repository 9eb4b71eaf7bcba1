"""The health of devices as their drivers' plugins tell it (DRA-35 to DRA-38).

Pure: times come in, in seconds of one clock. Each plugin's word is kept apart from that of
others of the same driver, so that one that ends takes only its own with it (DRA-T14).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

DEFAULT_TIMEOUT_SECONDS = 30.0
MESSAGE_BYTES = 1024
_CUT = "..."


class Health(StrEnum):
    """How a device is, as a pod's status names it."""

    HEALTHY = "Healthy"
    UNHEALTHY = "Unhealthy"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True)
class Device:
    """A device of a driver."""

    pool: str
    name: str


@dataclass(frozen=True, slots=True)
class Report:
    """What is said of a device, and for how many seconds it holds; 0: the default."""

    health: Health
    message: str = ""
    timeout: float = 0.0


@dataclass(frozen=True, slots=True)
class Source:
    """A plugin of a driver."""

    driver: str
    endpoint: str


@dataclass(frozen=True, slots=True)
class Known:
    """What a plugin said of a device, and when it was heard."""

    report: Report
    heard: float

    def at(self, now: float) -> Report:
        """What it is worth at `now`."""
        if now - self.heard > self.report.timeout:
            return Report(Health.UNKNOWN, "", self.report.timeout)
        return self.report


@dataclass(frozen=True, slots=True)
class HealthBook:
    """What every plugin said, by plugin."""

    by_source: Mapping[Source, Mapping[Device, Known]] = field(default_factory=dict)

    def heard(self, source: Source, reports: Mapping[Device, Report], now: float) -> HealthBook:
        """A plugin has sent a message. Devices that it leaves out keep what they have (DRA-36)."""
        known = dict(self.by_source.get(source, {}))
        for device, report in reports.items():
            known[device] = Known(as_kept(report), now)
        return replace(self, by_source={**self.by_source, source: known})

    def ended(self, source: Source) -> HealthBook:
        """A plugin's stream has ended: nothing that it said holds any more."""
        rest = {other: known for other, known in self.by_source.items() if other != source}
        return replace(self, by_source=rest)

    def of(self, driver: str, device: Device, now: float) -> Report | None:
        """The last word on a device (DRA-38); None if its driver tells nothing of any device."""
        sources = [known for source, known in self.by_source.items() if source.driver == driver]
        if not sources:
            return None
        words = [known[device] for known in sources if device in known]
        if not words:
            return Report(Health.UNKNOWN)
        return max(words, key=lambda known: known.heard).at(now)


def as_kept(report: Report) -> Report:
    """A report with its own limits: a timeout, and a message that is not too long."""
    timeout = report.timeout if report.timeout > 0 else DEFAULT_TIMEOUT_SECONDS
    return Report(report.health, cut(report.message), timeout)


def cut(message: str) -> str:
    """At most 1024 bytes; what is cut off ends between two characters (DRA-T13)."""
    data = message.encode()
    if len(data) <= MESSAGE_BYTES:
        return message
    return data[: MESSAGE_BYTES - len(_CUT)].decode(errors="ignore") + _CUT
