"""Channels to the admit handlers of others, and the steps of the chain that ask over them.

Separate from the chain, which only knows that some handlers are remote. Where there is no such
handler, nothing of gRPC's client side is set up here.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from grpc import aio

from numalign.config.settings import FailurePolicy, Settings
from numalign.process.admission_chain import OthersStep
from numalign.rpc.channel import open_channel
from numalign.telemetry.metrics import Metrics
from numalign.telemetry.tracing import active_tracer


@dataclass(frozen=True, slots=True)
class Others:
    """Handlers of others with their places, and the channels to them."""

    steps: tuple[OthersStep, ...] = ()
    channels: tuple[aio.Channel, ...] = ()

    async def close(self) -> None:
        """Close the channels."""
        await asyncio.gather(*(channel.close() for channel in self.channels))


def open_others(settings: Settings, metrics: Metrics) -> Others:
    """The handlers that the settings name. They are connected to when they are first asked."""
    wanted = settings.admission.handlers
    if not wanted:
        return Others()
    from numalign.admission.others.handler import OthersHandler, Terms  # noqa: PLC0415 - memory
    from numalign.admission.others.messages import OtherPods  # noqa: PLC0415

    durations = metrics.histogram("numalign_admit_handler_duration_seconds")
    pods = OtherPods(settings.gates)
    steps: list[OthersStep] = []
    channels: list[aio.Channel] = []
    for handler in wanted:
        channel = open_channel(handler.socket, active_tracer())
        terms = Terms(
            name=handler.name,
            endpoint=str(handler.socket),
            timeout=handler.timeout,
            ignore_failure=handler.failure_policy is FailurePolicy.IGNORE,
        )
        steps.append((OthersHandler(terms, channel, pods, durations).step(), handler.place))
        channels.append(channel)
    return Others(tuple(steps), tuple(channels))
