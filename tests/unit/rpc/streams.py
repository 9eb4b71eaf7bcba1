"""A channel to Echo whose unary calls go over a stream."""

from __future__ import annotations

import asyncio
from pathlib import Path

from grpc import aio
from tests.unit.rpc.echo import SERVICE, EchoStub

from numalign.rpc.call_stream.caller import CallStream
from numalign.rpc.channel import call_stream_of, open_channel

UNARY = f"/{SERVICE}/Unary"


def stream_of(channel: aio.Channel) -> CallStream:
    stream = call_stream_of(channel)
    assert stream is not None
    return stream


async def opened(channel: aio.Channel, stub: EchoStub) -> CallStream:
    """The stream of the channel once it is open: the call that has it opened goes by itself."""
    stream = stream_of(channel)
    stream.want(True)
    async with asyncio.timeout(60):
        while not stream.is_open:
            await stub.Unary(b"hello", timeout=60)
            await asyncio.sleep(0.005)
    return stream


def streaming_channel(path: Path) -> aio.Channel:
    return open_channel(path, carried=[UNARY])
