"""What `numalign-agent node` counts, by name."""

from __future__ import annotations

from numalign.telemetry.metrics import Kind, MetricSpec

READY = "numalign_agent_node_ready"
PART_READY = "numalign_agent_node_part_ready"
TAINTED = "numalign_agent_node_tainted"
TAINT_CHANGES = "numalign_agent_node_taint_changes_total"
TOPOLOGY_WRITES = "numalign_agent_node_topology_writes_total"
TOPOLOGY_CURRENT = "numalign_agent_node_topology_current"
TOPOLOGY_CONFIRMED = "numalign_agent_node_topology_confirmed_timestamp_seconds"
API_FAILURES = "numalign_agent_node_api_failures_total"

ALONE = (
    MetricSpec(
        name=READY,
        kind=Kind.GAUGE,
        help="Whether every service is ready, and the runtime's plugin where there is one",
    ),
    MetricSpec(
        name=PART_READY,
        kind=Kind.GAUGE,
        help="Whether one of them is ready",
        labels=("part",),
    ),
    MetricSpec(
        name=TAINTED,
        kind=Kind.GAUGE,
        help="Whether the Node had the start-up taint when it was last read",
    ),
    MetricSpec(
        name=TAINT_CHANGES,
        kind=Kind.COUNTER,
        help="How often the start-up taint was taken off the Node or put back",
        labels=("change",),
        start=(("removed",), ("restored",)),
    ),
    MetricSpec(
        name=API_FAILURES,
        kind=Kind.COUNTER,
        help="Calls to the API server that did not succeed, by what they were for",
        labels=("purpose",),
        start=(("taint",), ("topology",)),
    ),
)
"""What is counted in any case."""

TOPOLOGY = (
    MetricSpec(
        name=TOPOLOGY_WRITES,
        kind=Kind.COUNTER,
        help="How often the node's NodeResourceTopology was written",
        labels=("change",),
        start=(("created",), ("updated",), ("repaired",), ("deleted",)),
    ),
    MetricSpec(
        name=TOPOLOGY_CURRENT,
        kind=Kind.GAUGE,
        help="Whether the node's NodeResourceTopology says what the services last told",
    ),
    MetricSpec(
        name=TOPOLOGY_CONFIRMED,
        kind=Kind.GAUGE,
        help="When that was last so, in seconds since 1970; 0 before the first time",
    ),
)
"""What is counted where the topology is exported: elsewhere 0 would say that it is out of date."""

NODE = (*ALONE, *TOPOLOGY)
"""Everything that it counts."""
