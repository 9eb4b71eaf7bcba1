"""A small client of the Container Runtime Interface: what a kubelet asks of a runtime."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import grpc
from grpc import aio

# Compiled here and not in the package: nothing but these tests speaks it.
cri, _services = grpc.protos_and_services("tests/e2e/cri.proto")

OF_POD, OF_CONTAINER, OF_NODE = 0, 1, 2
"""Whose a namespace is."""
RUNNING, EXITED = 1, 2
"""States of a container."""
SECONDS = 60.0
"""More than any call takes on a machine that works, however busy."""


class Cri:
    """One runtime. Calls raise aio.AioRpcError."""

    def __init__(self, socket: Path) -> None:
        # The runtime answers to no other authority than this one.
        options = [("grpc.default_authority", "localhost")]
        self._channel = aio.insecure_channel(f"unix://{socket}", options=options)
        self._stub = _services.RuntimeServiceStub(self._channel)

    async def close(self) -> None:
        await self._channel.close()

    async def version(self, seconds: float) -> Any:
        return await self._stub.Version(cri.VersionRequest(), timeout=seconds)

    async def run_sandbox(self, config: Any) -> str:
        request = cri.RunPodSandboxRequest(config=config)
        return str((await self._stub.RunPodSandbox(request, timeout=SECONDS)).pod_sandbox_id)

    async def sandbox_pid(self, sandbox: str) -> int:
        """The process that holds a sandbox's namespaces."""
        request = cri.PodSandboxStatusRequest(pod_sandbox_id=sandbox, verbose=True)
        answer = await self._stub.PodSandboxStatus(request, timeout=SECONDS)
        return int(json.loads(answer.info["info"])["pid"])

    async def stop_sandbox(self, sandbox: str) -> None:
        request = cri.StopPodSandboxRequest(pod_sandbox_id=sandbox)
        await self._stub.StopPodSandbox(request, timeout=SECONDS)

    async def remove_sandbox(self, sandbox: str) -> None:
        request = cri.RemovePodSandboxRequest(pod_sandbox_id=sandbox)
        await self._stub.RemovePodSandbox(request, timeout=SECONDS)

    async def sandboxes(self) -> list[Any]:
        answer = await self._stub.ListPodSandbox(cri.ListPodSandboxRequest(), timeout=SECONDS)
        return list(answer.items)

    async def create(self, sandbox: str, config: Any, sandbox_config: Any) -> str:
        request = cri.CreateContainerRequest(
            pod_sandbox_id=sandbox, config=config, sandbox_config=sandbox_config
        )
        return str((await self._stub.CreateContainer(request, timeout=SECONDS)).container_id)

    async def start(self, container: str) -> None:
        request = cri.StartContainerRequest(container_id=container)
        await self._stub.StartContainer(request, timeout=SECONDS)

    async def stop(self, container: str, grace: int = 0) -> None:
        request = cri.StopContainerRequest(container_id=container, timeout=grace)
        await self._stub.StopContainer(request, timeout=SECONDS + grace)

    async def status(self, container: str) -> Any:
        request = cri.ContainerStatusRequest(container_id=container)
        return (await self._stub.ContainerStatus(request, timeout=SECONDS)).status

    async def remove(self, container: str) -> None:
        request = cri.RemoveContainerRequest(container_id=container)
        await self._stub.RemoveContainer(request, timeout=SECONDS)

    async def update(self, container: str, **resources: Any) -> None:
        linux = cri.LinuxContainerResources(**resources)
        request = cri.UpdateContainerResourcesRequest(container_id=container, linux=linux)
        await self._stub.UpdateContainerResources(request, timeout=SECONDS)

    async def run_inside(self, container: str, *command: str) -> str:
        """What a command prints that is run in a container."""
        answer = await self.run_for_code(container, command, int(SECONDS))
        assert answer.exit_code == 0, answer.stderr.decode()
        return str(answer.stdout.decode())

    async def run_for_code(self, container: str, command: Sequence[str], seconds: int) -> Any:
        """Its exit_code, stdout and stderr; the runtime ends it after these seconds."""
        request = cri.ExecSyncRequest(container_id=container, cmd=command, timeout=seconds)
        return await self._stub.ExecSync(request, timeout=SECONDS + seconds)
