"""A node's sockets, tried as other users: those who are listed may call, nobody else may.

Runs as root, which alone can become somebody else; elsewhere it is skipped, and in CI it must
not be.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import stat
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import pytest
from tests.integration.node_document import pod, write_document
from tests.unit.process.second_owner.fake_node import FakeNode
from tests.unit.rpc.certificates import make_authority

from numalign.rpc.channel import open_channel
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import control_pb2 as ct
from numalign.v1 import topology_pb2 as tm
from numalign.v1 import types_pb2 as pb
from numalign.v1.admission_pb2_grpc import AdmissionStub
from numalign.v1.control_pb2_grpc import ControlStub
from numalign.v1.topology_pb2_grpc import TopologyManagerStub

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(
        os.geteuid() != 0 and "CI" not in os.environ, reason="only root can become another user"
    ),
]
ROOT = Path(__file__).parents[2]
AGENT, AGENTS, STRANGER = 23101, 23102, 23103
SOCKETS = {"allow": {"uids": [AGENT], "gids": [AGENTS]}}
START_SECONDS = 60.0


@pytest.fixture
def directory() -> Iterator[Path]:
    """Short enough for sockets, and open to other users up to the sockets' own directory."""
    path = Path(tempfile.mkdtemp(prefix="na-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@asynccontextmanager
async def node(directory: Path, **extension: object) -> AsyncIterator[None]:
    """All services in one process, until they listen; stopped in the end."""
    config = write_document(directory, **extension)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "numalign.cli", "serve", "all", "--config", str(config)),
        cwd=ROOT,
    )
    try:
        async with open_channel(directory / "run" / "admission.sock") as channel:
            request = ad.AdmitRequest(pod=pod("probe", gpus=0), dry_run=True)
            await AdmissionStub(channel).Admit(request, timeout=START_SECONDS, wait_for_ready=True)
        yield
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), START_SECONDS) == 0


async def tried_by(uid: int, gid: int, directory: Path) -> dict[str, str]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.integration.other_agent", str(uid), str(gid)),
        str(directory),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await asyncio.wait_for(process.communicate(), 60)
    found: dict[str, str] = json.loads(output)
    return found


async def test_only_who_is_listed_can_call_any_service(directory: Path) -> None:
    async with node(directory, sockets=SOCKETS, podResources={}):
        stranger = await tried_by(STRANGER, STRANGER, directory)
        listed = [
            await tried_by(AGENT, STRANGER, directory),
            await tried_by(STRANGER, AGENTS, directory),
        ]

        assert len(stranger) == 12
        assert set(stranger.values()) == {"UNAVAILABLE"}
        for answers in listed:
            assert set(answers.values()) == {"OK"}, answers
        async with open_channel(directory / "run" / "admission.sock") as channel:
            listing = await AdmissionStub(channel).ListAdmissions(ad.ListAdmissionsRequest())
        assert list(listing.admissions) == []


async def test_without_a_list_nobody_else_can(directory: Path) -> None:
    async with node(directory, podResources={}):
        run = (directory / "run").stat()
        assert stat.S_IMODE(run.st_mode) == 0o750
        for uid, gid in ((AGENT, AGENTS), (STRANGER, STRANGER)):
            assert set((await tried_by(uid, gid, directory)).values()) == {"UNAVAILABLE"}
        assert set((await tried_by(0, 0, directory)).values()) == {"OK"}


async def test_no_request_makes_a_service_connect_where_it_likes(directory: Path) -> None:
    async with node(directory):
        (directory / "run" / "link").symlink_to("/run/elsewhere.sock")
        async with open_channel(directory / "run" / "topology.sock") as channel:
            topology = TopologyManagerStub(channel)
            for endpoint in ("/run/elsewhere.sock", f"{directory}/run/link", "dns:///host:1"):
                with pytest.raises(grpc.aio.AioRpcError) as caught:
                    await topology.RegisterHintProvider(
                        tm.RegisterHintProviderRequest(name="x", endpoint=endpoint), timeout=60
                    )
                assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
                assert "endpoint: " in (caught.value.details() or "")


async def test_over_tcp_there_is_admission_alone_and_only_with_a_certificate(
    directory: Path, unused_tcp_port: int
) -> None:
    authority = make_authority(directory / "tls")
    files = authority.files("server")
    certificate, key = authority.issue("agent")
    listen = {
        "address": f"127.0.0.1:{unused_tcp_port}",
        "tls": {
            "cert": str(files.certificate),
            "key": str(files.key),
            "clientCA": str(files.client_authority),
        },
    }
    async with node(directory, listen=[listen]):
        trusted = authority.certificate.read_bytes()
        target = f"localhost:{unused_tcp_port}"
        ours = grpc.ssl_channel_credentials(trusted, key.read_bytes(), certificate.read_bytes())
        async with grpc.aio.secure_channel(target, ours) as channel:
            answer = await AdmissionStub(channel).Admit(
                ad.AdmitRequest(pod=pod("remote", gpus=0)), timeout=60
            )
            assert answer.verdict == pb.VERDICT_ADMITTED
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await ControlStub(channel).Reload(ct.ReloadRequest(), timeout=60)
            assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
        none = grpc.ssl_channel_credentials(trusted)
        async with grpc.aio.secure_channel(target, none) as channel:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await AdmissionStub(channel).ListAdmissions(ad.ListAdmissionsRequest(), timeout=60)
            assert caught.value.code() is grpc.StatusCode.UNAVAILABLE


@pytest.mark.parametrize(
    ("service", "starts"),
    [("all", False), ("cpu", False), ("memory", True), ("topology", True)],
)
async def test_a_second_owner_of_the_cpus(directory: Path, service: str, starts: bool) -> None:
    host = FakeNode(directory / "host")
    state = host.state("cpu_manager_state", "static")
    config = write_document(directory, hostRoot=str(host.root))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "numalign.cli", "serve", service, "--config", str(config)),
        cwd=ROOT,
        stderr=asyncio.subprocess.PIPE,
    )
    if starts:
        async with open_channel(directory / "run" / f"{service}.sock") as channel:
            control = ControlStub(channel)
            status = await control.GetStatus(
                ct.GetStatusRequest(), timeout=START_SECONDS, wait_for_ready=True
            )
        assert list(status.services) == [service]
        process.send_signal(signal.SIGTERM)
    _, said = await asyncio.wait_for(process.communicate(), START_SECONDS)

    assert process.returncode == (0 if starts else 1)
    refusal = f"second owner: the kubelet's CPU Manager has policy static ({state}): the same CPUs "
    assert (refusal in said.decode()) is not starts


async def test_a_tolerated_second_owner_is_told(directory: Path) -> None:
    host = FakeNode(directory / "host")
    host.state("memory_manager_state", "Static")
    async with node(directory, hostRoot=str(host.root), secondOwner="tolerate"):
        async with open_channel(directory / "run" / "admission.sock") as channel:
            status = await ControlStub(channel).GetStatus(ct.GetStatusRequest(), timeout=60)
        assert any(report.startswith("second owner of memory: ") for report in status.reports)
