"""Device plugins with bad manners as a process, each on a socket of its own.

    python tests/integration/bad_plugins.py DIRECTORY WATCHED MANNER...

Each manner is a plugin of the resource `example.com/<manner>`. It registers at the socket in
DIRECTORY, or is found in WATCHED. Once all have been answered, a line of JSON on standard
output tells what: the error, or null.
The process knows the kubelet's interface and nothing of numalign but the stubs.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc

from numalign.kube.deviceplugin.v1beta1 import api_pb2 as dp
from numalign.kube.deviceplugin.v1beta1 import api_pb2_grpc as dp_grpc
from numalign.kube.pluginregistration.v1 import api_pb2 as pr
from numalign.kube.pluginregistration.v1 import api_pb2_grpc as pr_grpc

NEVER = threading.Event()


def device(id_: str, *nodes: int, health: str = "Healthy") -> dp.Device:
    """A device; without nodes it has no topology."""
    topology = dp.TopologyInfo(nodes=[dp.NUMANode(ID=node) for node in nodes]) if nodes else None
    return dp.Device(ID=id_, health=health, topology=topology)


def allocated(request: dp.AllocateRequest) -> dp.AllocateResponse:
    """What a plugin with good manners answers."""
    responses = [
        dp.ContainerAllocateResponse(envs={"IDS": ",".join(asked.devices_ids)})
        for asked in request.container_requests
    ]
    return dp.AllocateResponse(container_responses=responses)


def failed(request: Any) -> Any:
    """An error of the plugin's own."""
    del request
    raise RuntimeError("out of order")


def hung(request: Any) -> Any:
    """No answer."""
    del request
    NEVER.wait()


@dataclass(frozen=True)
class Manner:
    """How a plugin behaves."""

    devices: tuple[dp.Device, ...] = (device("a", 0), device("b", 0))
    version: str = "v1beta1"
    resource: str | None = None
    options: dp.DevicePluginOptions = field(default_factory=dp.DevicePluginOptions)
    says_options: bool = True
    allocate: Callable[[dp.AllocateRequest], dp.AllocateResponse] = allocated
    prefer: Callable[[dp.PreferredAllocationRequest], dp.PreferredAllocationResponse] = failed
    floods: bool = False
    found: bool = False
    type: str = "DevicePlugin"


def prefer(*ids: str) -> Callable[[Any], dp.PreferredAllocationResponse]:
    """A preference that does not look at the question."""
    return lambda _: dp.PreferredAllocationResponse(
        container_responses=[dp.ContainerPreferredAllocationResponse(deviceIDs=ids)]
    )


def die(request: dp.AllocateRequest) -> dp.AllocateResponse:
    """The process is gone."""
    del request
    os._exit(1)


ASKS = dp.DevicePluginOptions(get_preferred_allocation_available=True)

MANNERS = {
    "version": Manner(version="v1alpha1"),
    "bad-name": Manner(resource="gpu"),
    "native-name": Manner(resource="kubernetes.io/gpu"),
    "found-version": Manner(found=True, version="v1alpha1"),
    "found-bad-name": Manner(found=True, resource="gpu"),
    "found-type": Manner(found=True, type="GPUPlugin"),
    "found-no-options": Manner(found=True, says_options=False),
    "no-options": Manner(says_options=False),
    "twice": Manner(devices=(device("a", 1, health="Sick"), device("b", 1), device("a", 0))),
    "far": Manner(devices=(device("a", 9), device("b", 9))),
    "negative": Manner(devices=(device("a", -1), device("b", -1))),
    "half-far": Manner(devices=(device("a", 1, 9), device("b", 1, -1))),
    "fails": Manner(allocate=failed),
    "hangs": Manner(allocate=hung),
    "too-few": Manner(allocate=lambda _: dp.AllocateResponse()),
    "unlisted": Manner(options=ASKS, prefer=prefer("nowhere", "b")),
    "prefers-nothing": Manner(options=ASKS, prefer=lambda _: dp.PreferredAllocationResponse()),
    "cannot-prefer": Manner(options=ASKS, prefer=failed),
    "hangs-preferring": Manner(options=ASKS, prefer=hung),
    "floods": Manner(floods=True),
    "dies": Manner(options=ASKS, prefer=prefer("b"), allocate=die),
    "good": Manner(),
}


class Plugin(dp_grpc.DevicePluginServicer, pr_grpc.RegistrationServicer):
    """One plugin of one manner."""

    def __init__(self, name: str, manner: Manner) -> None:
        self._manner = manner
        self._resource = manner.resource or f"example.com/{name}"
        self._notified: queue.Queue[str | None] = queue.Queue()

    def answer(self, kubelet: Any, endpoint: str) -> str | None:
        """Register, or wait to be found: the error that this is answered with, if any."""
        if self._manner.found:
            return self._notified.get(timeout=60)
        request = dp.RegisterRequest(
            version=self._manner.version, endpoint=endpoint, resource_name=self._resource
        )
        try:
            kubelet.Register(request, timeout=60, wait_for_ready=True)
        except grpc.RpcError as error:
            return f"{error.code().name}: {error.details()}"
        return None

    def GetInfo(self, request: Any, context: Any) -> Any:  # noqa: N802 - the interface's
        del request, context
        return pr.PluginInfo(
            type=self._manner.type,
            name=self._resource,
            supported_versions=[self._manner.version],
        )

    def NotifyRegistrationStatus(self, request: Any, context: Any) -> Any:  # noqa: N802 - as above
        del context
        self._notified.put(None if request.plugin_registered else request.error)
        return pr.RegistrationStatusResponse()

    def GetDevicePluginOptions(self, request: Any, context: Any) -> Any:  # noqa: N802 - the interface's
        del request
        if not self._manner.says_options:
            context.abort(grpc.StatusCode.UNKNOWN, "no options")
        return self._manner.options

    def ListAndWatch(self, request: Any, context: Any) -> Iterator[Any]:  # noqa: N802 - as above
        del request
        listed = dp.ListAndWatchResponse(devices=self._manner.devices)
        yield listed
        while context.is_active():
            if not self._manner.floods:
                NEVER.wait(0.1)
            else:
                yield listed

    def GetPreferredAllocation(self, request: Any, context: Any) -> Any:  # noqa: N802 - as above
        return self._answered(self._manner.prefer, request, context)

    def Allocate(self, request: Any, context: Any) -> Any:  # noqa: N802 - as above
        return self._answered(self._manner.allocate, request, context)

    def PreStartContainer(self, request: Any, context: Any) -> Any:  # noqa: N802 - as above
        del request, context
        return dp.PreStartContainerResponse()

    @staticmethod
    def _answered(answer: Callable[[Any], Any], request: Any, context: Any) -> Any:
        try:
            return answer(request)
        except RuntimeError as error:
            return context.abort(grpc.StatusCode.UNKNOWN, str(error))


def main(directory: str, watched: str, *names: str) -> None:
    """Serve and register every named plugin, and stay until the process is ended."""
    servers = []
    answers: dict[str, str | None] = {}
    with grpc.insecure_channel(f"unix:{Path(directory) / 'kubelet.sock'}") as channel:
        kubelet = dp_grpc.RegistrationStub(channel)
        for name in names:
            manner = MANNERS[name]
            plugin = Plugin(name, manner)
            server = grpc.server(futures.ThreadPoolExecutor(max_workers=4))
            dp_grpc.add_DevicePluginServicer_to_server(plugin, server)
            pr_grpc.add_RegistrationServicer_to_server(plugin, server)
            server.add_insecure_port(f"unix:{Path(watched if manner.found else directory)}/{name}")
            server.start()
            servers.append(server)
            answers[name] = plugin.answer(kubelet, name)
    sys.stdout.write(json.dumps(answers) + "\n")
    sys.stdout.flush()
    NEVER.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
