"""SIGHUP to a real process: a new configuration in force, and a wrong one refused."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import yaml
from grpc import aio
from tests.integration.node_document import document, pod, write_document

from numalign.config.settings import CORE_SERVICES, Service
from numalign.rpc.channel import open_channel
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import admission_pb2_grpc as ad_grpc
from numalign.v1 import control_pb2 as ct
from numalign.v1 import control_pb2_grpc as ct_grpc
from numalign.v1 import topology_pb2 as tm
from numalign.v1 import topology_pb2_grpc as tm_grpc

WAIT_SECONDS = 60.0


@asynccontextmanager
async def served(directory: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """All services in a process of their own; its log is what it writes to standard error."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "numalign.cli",
        "serve",
        "all",
        "--config",
        str(directory / "config.yaml"),
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        process.terminate()
        await asyncio.wait_for(process.communicate(), WAIT_SECONDS)


async def line_with(process: asyncio.subprocess.Process, text: str) -> str:
    """The next line of the log that has `text` in it."""
    assert process.stderr is not None
    while True:
        line = (await asyncio.wait_for(process.stderr.readline(), WAIT_SECONDS)).decode()
        assert line, f"the log ended without {text!r}"
        if text in line:
            return line


def change(directory: Path, **kubelet: object) -> None:
    changed = document(directory, log={"level": "info"}) | kubelet
    (directory / "config.yaml").write_text(yaml.safe_dump(changed))


@pytest.mark.processes
async def test_sighup() -> None:
    with tempfile.TemporaryDirectory(prefix="na-") as name:
        directory = Path(name)
        write_document(directory, log={"level": "info"})
        async with served(directory) as process:
            await line_with(process, "serving")
            channels = {s: open_channel(directory / "run" / f"{s}.sock") for s in CORE_SERVICES}
            admission = ad_grpc.AdmissionStub(channels[Service.ADMISSION])
            topology = tm_grpc.TopologyManagerStub(channels[Service.TOPOLOGY])
            running = await admission.Admit(ad.AdmitRequest(pod=pod("a")), wait_for_ready=True)

            change(directory, topologyManagerPolicy="restricted")
            os.kill(process.pid, signal.SIGHUP)
            await line_with(process, "configuration reloaded")
            changed = await topology.GetPolicy(tm.GetPolicyRequest())
            again = await admission.Admit(ad.AdmitRequest(pod=pod("a")))

            change(directory, topologyManagerPolicy="no-such")
            os.kill(process.pid, signal.SIGHUP)
            refusal = await line_with(process, "reload refused")
            kept = await topology.GetPolicy(tm.GetPolicyRequest())
            with pytest.raises(aio.AioRpcError, match="no-such"):
                await ct_grpc.ControlStub(channels[Service.CPU]).Reload(ct.ReloadRequest())
            for channel in channels.values():
                await channel.close()

    assert (changed.policy, changed.config_generation) == ("restricted", 2)
    assert again.already_admitted
    assert again.allocations == running.allocations
    assert "no-such" in refusal
    assert kept == changed
