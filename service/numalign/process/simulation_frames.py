"""What a service and the process that simulates for it say to each other.

Separate from both ends, because the service must not import what the process does. Both speak over
one socket: the order goes one way, then frames come back until an end. Each is a length of four
bytes, most significant first, and so many bytes.
"""

from __future__ import annotations

import asyncio
import json
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

_LENGTH_BYTES = 4


class Kind(Enum):
    """What a frame from the process is, by its first byte."""

    ANSWER = b"a"
    """A SimulateResponse."""
    REFUSED = b"r"
    """The last one: no node could run like this; why, in lines of UTF-8."""
    UNAVAILABLE = b"u"
    """The last one: the copy could not be brought to decide; why."""
    END = b"e"
    """The last one: every pod is answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What is to be simulated. Pods, records and the Node object are serialised messages.

    - `configuration`: the node's, with its machine inline;
    - `under`: the text of another one, `policy` and `scope`: in place of what it says; or empty;
    - `inventory`: the node's devices, None where the configuration lists them;
    - `registered`: hint providers of others that the node asks;
    - `admissions`: record and pod of each admitted pod, `revision`: of when they were;
    - `node`: a Node object, empty: none; `explain`: the number of a level;
    - `place`: a directory for files; `log_format`: how the process logs.
    """

    configuration: Mapping[str, Any]
    under: str
    policy: str
    scope: str
    inventory: Sequence[Mapping[str, Any]] | None
    registered: Sequence[str]
    admissions: Sequence[tuple[bytes, bytes]]
    revision: int
    node: bytes
    pods: Sequence[bytes]
    explain: int
    place: str
    log_format: str


def order_bytes(order: Order) -> bytes:
    """The order as bytes."""
    return json.dumps(
        {
            "configuration": order.configuration,
            "under": order.under,
            "policy": order.policy,
            "scope": order.scope,
            "inventory": order.inventory,
            "registered": order.registered,
            "admissions": [[_text(record), _text(pod)] for record, pod in order.admissions],
            "revision": order.revision,
            "node": _text(order.node),
            "pods": [_text(pod) for pod in order.pods],
            "explain": order.explain,
            "place": order.place,
            "log_format": order.log_format,
        }
    ).encode()


def order_from_bytes(data: bytes) -> Order:
    """The order that `order_bytes` wrote."""
    document = json.loads(data)
    document["admissions"] = [
        (b64decode(record), b64decode(pod)) for record, pod in document["admissions"]
    ]
    document["node"] = b64decode(document["node"])
    document["pods"] = [b64decode(pod) for pod in document["pods"]]
    return Order(**document)


async def read_frame(reader: asyncio.StreamReader) -> bytes:
    """The next frame; empty where the other end has gone."""
    try:
        length = int.from_bytes(await reader.readexactly(_LENGTH_BYTES))
        return await reader.readexactly(length)
    except (asyncio.IncompleteReadError, ConnectionError):
        return b""


async def write_frame(writer: asyncio.StreamWriter, data: bytes) -> None:
    """Send a frame. Raises OSError where the other end has gone."""
    writer.write(len(data).to_bytes(_LENGTH_BYTES) + data)
    await writer.drain()


def _text(data: bytes) -> str:
    return b64encode(data).decode()
