"""The process in which a service has pods simulated: one order, its answers, and it ends.

A process of its own, so that the service holds none of what it imports, a decision never waits for
one over a copy, and whoever no longer wants the answers ends it at once, whatever it is doing. It
runs behind the services of the machine. It ends by itself when the service does.
"""

from __future__ import annotations

import asyncio
import faulthandler
import os
import socket
import sys
from contextlib import aclosing
from pathlib import Path

from numalign.config.loader import load_settings
from numalign.config.settings_document import settings_document
from numalign.errors import NumalignError, StartError, Unavailable
from numalign.kube.core.v1 import core_pb2
from numalign.process.simulation import Copy, changed, copy_of, simulated
from numalign.process.simulation_frames import (
    Kind,
    Order,
    order_from_bytes,
    read_frame,
    write_frame,
)
from numalign.telemetry.logs import configure_logs
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import types_pb2 as pb

_NICENESS = 10
_CONFIGURATION = "configuration.yaml"


def main() -> int:
    """Serve the socket that is standard input; the exit code."""
    # Where it dies of a signal, the log of the service says at which line.
    faulthandler.enable()
    os.nice(_NICENESS)
    return asyncio.run(_serve(socket.socket(fileno=os.dup(sys.stdin.fileno()))))


async def _serve(connection: socket.socket) -> int:
    reader, writer = await asyncio.open_connection(sock=connection)
    data = await read_frame(reader)
    if not data:
        return 0
    order = order_from_bytes(data)
    # What the copy has to say of itself would be taken for the node's.
    configure_logs(order.log_format, "error")
    work = asyncio.ensure_future(_answer(order, writer))
    gone = asyncio.ensure_future(reader.read(1))
    await asyncio.wait((work, gone), return_when=asyncio.FIRST_COMPLETED)
    for task in (work, gone):
        task.cancel()
    ended, _ = await asyncio.gather(work, gone, return_exceptions=True)
    writer.close()
    if isinstance(ended, Exception) and not isinstance(ended, OSError):
        raise ended
    return 0


async def _answer(order: Order, writer: asyncio.StreamWriter) -> None:
    """Send every answer, or why there are none."""
    try:
        copy = _copy(order)
        node = ad.SimulatedNode(revision=order.revision, notes=copy.notes)
        await _send(writer, ad.SimulateResponse(node=node))
        pods = map(core_pb2.Pod.FromString, order.pods)
        explain = pb.ExplainLevel.ValueType(order.explain)
        async with aclosing(simulated(copy, pods, explain, Path(order.place))) as answers:
            async for answer in answers:
                await _send(writer, ad.SimulateResponse(pod=answer))
    except Unavailable as error:
        await write_frame(writer, Kind.UNAVAILABLE.value + str(error).encode())
    except NumalignError as error:
        # The only names of files in it are ours.
        said = error.line() if isinstance(error, StartError) else str(error)
        text = said.replace(f"{order.place}/{_CONFIGURATION}: ", "")
        await write_frame(writer, Kind.REFUSED.value + text.encode())
    else:
        await write_frame(writer, Kind.END.value)


async def _send(writer: asyncio.StreamWriter, response: ad.SimulateResponse) -> None:
    await write_frame(writer, Kind.ANSWER.value + response.SerializeToString())


def _copy(order: Order) -> Copy:
    configuration = order.configuration
    if order.under:
        configuration = _configured(order)
    return copy_of(
        changed(
            configuration, order.policy, order.scope, with_node_devices=order.inventory is not None
        ),
        [(pb.AdmissionRecord.FromString(record), pod) for record, pod in order.admissions],
        order.inventory,
        core_pb2.Node.FromString(order.node) if order.node else None,
        order.registered,
    )


def _configured(order: Order) -> dict[str, object]:
    """The configuration of the caller's text, on the node's machine. Raises ConfigError."""
    file = Path(order.place) / _CONFIGURATION
    file.write_text(order.under, encoding="utf-8")
    section = order.configuration["numalign"]
    here = {
        "machine": section["machine"],
        # They are the node's, however it came by them.
        "devices": [],
        "runtimeDirectory": section["runtimeDirectory"],
        "stateDirectory": section["stateDirectory"],
    }
    return settings_document(load_settings(file, {}, is_root=False, overrides=here))


if __name__ == "__main__":
    sys.exit(main())
