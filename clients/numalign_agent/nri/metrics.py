"""What the plugin counts, by name."""

from __future__ import annotations

from numalign.telemetry.metrics import Kind, MetricSpec
from numalign_agent.nri.plan.standing import Standing

CONNECTED = "numalign_agent_nri_connected"
CONNECTIONS = "numalign_agent_nri_connections_total"
EVENTS = "numalign_agent_nri_events_total"
EVENT_SECONDS = "numalign_agent_nri_event_duration_seconds"
DECISIONS = "numalign_agent_nri_decisions_total"
TOO_LATE = "numalign_agent_nri_admission_timeouts_total"
UNPINNED = "numalign_agent_nri_unpinned_containers_total"
UPDATES = "numalign_agent_nri_updates_total"
REFUSED_UPDATES = "numalign_agent_nri_updates_refused_total"
CONTAINERS = "numalign_agent_nri_containers"
LIFTED_QUOTAS = "numalign_agent_nri_quotas_lifted_total"
SECOND_OWNERS = "numalign_agent_nri_second_owners"

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0)

_DECISIONS = ("admitted", "estimated", "vetoed", "evicted", "shared", "undecided")

NRI = (
    MetricSpec(
        name=CONNECTED,
        kind=Kind.GAUGE,
        help="Whether the plugin is connected to the container runtime",
    ),
    MetricSpec(
        name=CONNECTIONS,
        kind=Kind.COUNTER,
        help="Connections to the container runtime that came about",
    ),
    MetricSpec(
        name=EVENTS,
        kind=Kind.COUNTER,
        help="Events of the container runtime, and how they were answered",
        labels=("event", "outcome"),
    ),
    MetricSpec(
        name=EVENT_SECONDS,
        kind=Kind.HISTOGRAM,
        help="Seconds that the container runtime waited for an answer",
        labels=("event",),
        buckets=_SECONDS,
    ),
    MetricSpec(
        name=DECISIONS,
        kind=Kind.COUNTER,
        help="What became of pods that Admission was asked about",
        labels=("outcome",),
        start=tuple((outcome,) for outcome in _DECISIONS),
    ),
    MetricSpec(
        name=TOO_LATE,
        kind=Kind.COUNTER,
        help="Calls of Admission that did not answer while the container runtime waited",
    ),
    MetricSpec(
        name=UNPINNED,
        kind=Kind.COUNTER,
        help="Containers that were found on CPUs or NUMA nodes that they should not use",
    ),
    MetricSpec(
        name=UPDATES,
        kind=Kind.COUNTER,
        help="Changes of running containers that the container runtime was told",
    ),
    MetricSpec(
        name=REFUSED_UPDATES,
        kind=Kind.COUNTER,
        help="Such changes that did not come into force",
    ),
    MetricSpec(
        name=CONTAINERS,
        kind=Kind.GAUGE,
        help="Containers that are there, by how their pods stand",
        labels=("standing",),
        start=tuple((standing.value,) for standing in Standing),
    ),
    MetricSpec(
        name=LIFTED_QUOTAS,
        kind=Kind.COUNTER,
        help="CFS quotas that were taken off containers with exclusive CPUs, and off their pods",
    ),
    MetricSpec(
        name=SECOND_OWNERS,
        kind=Kind.GAUGE,
        help="Others on this node that hand out the same CPUs or memory",
    ),
)
"""Everything that the plugin counts."""
