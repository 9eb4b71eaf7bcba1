"""Every metric that an installation can publish, and by whom: the services, and other packages.

Separate from the services' own list: what the agent counts is found by the entry points
`numalign.metrics`, since the services do not need the agent.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib.metadata import entry_points

from numalign.config.settings import Service
from numalign.process.metrics import services_of
from numalign.telemetry.metrics import MetricSpec
from numalign.telemetry.own_metrics import all_metrics

GROUP = "numalign.metrics"


@dataclass(frozen=True, slots=True)
class Published:
    """A metric, and who publishes it, as `cpu` or `agent`."""

    spec: MetricSpec
    by: tuple[str, ...]


def publishers() -> tuple[str, ...]:
    """Who publishes metrics: the services, then the others by name."""
    others = sorted(point.name for point in entry_points(group=GROUP))
    return (*(service.value for service in Service), *others)


def published() -> tuple[Published, ...]:
    """Every metric once, the services' first. Raises TypeError for an entry that has none."""
    found = {
        spec.name: Published(spec, tuple(service.value for service in services_of(spec)))
        for spec in all_metrics()
    }
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        for spec in point.load():
            if not isinstance(spec, MetricSpec):
                raise TypeError(f"{point.value} holds something that is no metric")
            known = found.get(spec.name, Published(spec, ()))
            found[spec.name] = replace(known, by=(*known.by, point.name))
    return tuple(found.values())
