"""Channels between services, and which of their calls go over one open stream.

Those that an admission waits for. Others stay calls of their own, since a long answer on a
stream stands in the way of the next.
"""

from __future__ import annotations

from pathlib import Path

from grpc import aio

from numalign.rpc.channel import call_stream_of, open_channel
from numalign.telemetry.tracing import active_tracer

_PROVIDER_CALLS = frozenset(
    f"/numalign.v1.HintProvider/{name}"
    for name in (
        "GetTopologyHints",
        "GetPodTopologyHints",
        "Allocate",
        "AllocatePod",
        "Seal",
        "Prepare",
        "Commit",
        "Abort",
        "Release",
    )
)

_TOPOLOGY_CALLS = frozenset(f"/numalign.v1.TopologyManager/{name}" for name in ("Admit", "Release"))


def provider_channel(path: Path) -> aio.Channel:
    """To a hint provider, which says by GetInfo whether it takes a stream."""
    return open_channel(path, active_tracer(), _PROVIDER_CALLS)


def topology_channel(path: Path) -> aio.Channel:
    """To the Topology Manager, whose streams are used where it has them."""
    channel = open_channel(path, active_tracer(), _TOPOLOGY_CALLS)
    stream = call_stream_of(channel)
    if stream is not None:
        stream.want(wanted=True)
    return channel
