"""The Plugin service that the runtime calls: its methods over `RuntimeEvents`.

Only translates, measures, and knows which events older runtimes put into StateChange.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from time import perf_counter
from typing import TypeVar

from google.protobuf.message import Message

from numalign.kube.nri.v1alpha1 import api_pb2 as nri
from numalign.telemetry.logs import get_logger
from numalign.telemetry.metrics import Metrics
from numalign_agent.nri.event_spans import in_span
from numalign_agent.nri.metrics import EVENT_SECONDS, EVENTS
from numalign_agent.nri.plan.abilities import WANTED_EVENTS, event_mask, registers_safely
from numalign_agent.nri.runtime_events import Runtime, RuntimeEvents
from numalign_agent.nri.wire.answerer import Method, Services
from numalign_agent.nri.wire.errors import CallFailed

PLUGIN_SERVICE = "nri.pkg.api.v1alpha1.Plugin"

Asked = TypeVar("Asked", bound=Message)

_log = get_logger("nri")


class SynchronizeParts:
    """The parts of one Synchronize that came so far: a runtime with much to tell splits it."""

    def __init__(self) -> None:
        self._pods: list[nri.PodSandbox] = []
        self._containers: list[nri.Container] = []

    def take(
        self, request: nri.SynchronizeRequest
    ) -> tuple[list[nri.PodSandbox], list[nri.Container]] | None:
        """Add a part: everything, if it was the last one, or None."""
        self._pods += request.pods
        self._containers += request.containers
        if request.more:
            return None
        whole = self._pods, self._containers
        self._pods, self._containers = [], []
        return whole


class PluginService:
    """One connection's Plugin service. `synchronized` is called after a whole Synchronize."""

    def __init__(
        self,
        events: RuntimeEvents,
        metrics: Metrics,
        synchronized: Callable[[], None],
        shutdown: Callable[[], None],
    ) -> None:
        self._events = events
        self._count = metrics.counter(EVENTS)
        self._seconds = metrics.histogram(EVENT_SECONDS)
        self._synchronized = synchronized
        self._shutdown = shutdown
        self._parts = SynchronizeParts()

    def services(self) -> Services:
        """The methods by name."""
        return {
            PLUGIN_SERVICE: {
                "Configure": self._method("Configure", nri.ConfigureRequest, self._configure),
                "Synchronize": self._method(
                    "Synchronize", nri.SynchronizeRequest, self._synchronize
                ),
                "Shutdown": self._method("Shutdown", nri.Empty, self._shut_down),
                "StateChange": self._method(
                    "StateChange", nri.StateChangeEvent, self._state_change
                ),
                "RunPodSandbox": self._method(
                    "RunPodSandbox", nri.RunPodSandboxRequest, self._run_pod_sandbox
                ),
                "StopPodSandbox": self._method(
                    "StopPodSandbox", nri.StopPodSandboxRequest, self._stop_pod_sandbox
                ),
                "RemovePodSandbox": self._method(
                    "RemovePodSandbox", nri.RemovePodSandboxRequest, self._remove_pod_sandbox
                ),
                "CreateContainer": self._method(
                    "CreateContainer", nri.CreateContainerRequest, self._create_container
                ),
                "UpdateContainer": self._method(
                    "UpdateContainer", nri.UpdateContainerRequest, self._update_container
                ),
                "StopContainer": self._method(
                    "StopContainer", nri.StopContainerRequest, self._stop_container
                ),
                "RemoveContainer": self._method(
                    "RemoveContainer", nri.RemoveContainerRequest, self._remove_container
                ),
            }
        }

    def _method(
        self, name: str, kind: type[Asked], handle: Callable[[Asked], Awaitable[Message]]
    ) -> Method:
        async def method(payload: bytes) -> bytes:
            outcome, start = "failed", perf_counter()
            try:
                answer = await handle(kind.FromString(payload))
                outcome = "answered"
            except CallFailed:
                outcome = "refused"
                raise
            finally:
                self._count.labels(name, outcome).inc()
                self._seconds.labels(name).observe(perf_counter() - start)
            return answer.SerializeToString()

        return method

    async def _configure(self, request: nri.ConfigureRequest) -> nri.ConfigureResponse:
        runtime = Runtime(
            request.runtime_name,
            request.runtime_version,
            request.NRI_version,
            request.request_timeout / 1000,
        )
        _log.info(
            "the runtime has configured the plugin",
            runtime=runtime.name,
            version=runtime.version,
            nri_version=runtime.nri_version or "not told",
        )
        if not registers_safely(runtime.name, runtime.version):
            _log.warning(
                "this runtime can lock up when a plugin registers while containers start: use "
                "containerd 1.7.16 or newer",
                version=runtime.version,
            )
        self._events.configured(runtime)
        self._events.connected()
        return nri.ConfigureResponse(events=event_mask(*WANTED_EVENTS))

    async def _synchronize(self, request: nri.SynchronizeRequest) -> nri.SynchronizeResponse:
        whole = self._parts.take(request)
        if whole is None:
            return nri.SynchronizeResponse(more=True)
        updates = self._events.synchronize(*whole)
        _log.info(
            "synchronized", pods=len(whole[0]), containers=len(whole[1]), updates=len(updates)
        )
        self._synchronized()
        return nri.SynchronizeResponse(update=updates)

    async def _shut_down(self, _: nri.Empty) -> nri.Empty:
        self._shutdown()
        return nri.Empty()

    async def _run_pod_sandbox(
        self, request: nri.RunPodSandboxRequest
    ) -> nri.RunPodSandboxResponse:
        await self._run(request.pod)
        return nri.RunPodSandboxResponse()

    async def _stop_pod_sandbox(
        self, request: nri.StopPodSandboxRequest
    ) -> nri.StopPodSandboxResponse:
        await self._stop(request.pod)
        return nri.StopPodSandboxResponse()

    async def _remove_pod_sandbox(
        self, request: nri.RemovePodSandboxRequest
    ) -> nri.RemovePodSandboxResponse:
        await self._remove(request.pod)
        return nri.RemovePodSandboxResponse()

    async def _create_container(
        self, request: nri.CreateContainerRequest
    ) -> nri.CreateContainerResponse:
        return await in_span(
            "CreateContainer",
            request.pod,
            self._events.create_container(request.pod, request.container),
            container=request.container.name,
        )

    async def _update_container(
        self, request: nri.UpdateContainerRequest
    ) -> nri.UpdateContainerResponse:
        return await in_span(
            "UpdateContainer",
            request.pod,
            self._events.update_container(request.pod, request.container),
            container=request.container.name,
        )

    async def _stop_container(self, request: nri.StopContainerRequest) -> nri.StopContainerResponse:
        return await in_span(
            "StopContainer",
            request.pod,
            self._events.stop_container(request.container),
            container=request.container.name,
        )

    async def _remove_container(
        self, request: nri.RemoveContainerRequest
    ) -> nri.RemoveContainerResponse:
        await self._remove_container_of(request.pod, request.container)
        return nri.RemoveContainerResponse()

    async def _state_change(self, event: nri.StateChangeEvent) -> nri.Empty:
        """An event for which an older runtime has no call of its own. Others are passed over."""
        handlers: Mapping[int, Callable[[], Awaitable[None]]] = {
            nri.RUN_POD_SANDBOX: lambda: self._run(event.pod),
            nri.STOP_POD_SANDBOX: lambda: self._stop(event.pod),
            nri.REMOVE_POD_SANDBOX: lambda: self._remove(event.pod),
            nri.REMOVE_CONTAINER: lambda: self._remove_container_of(event.pod, event.container),
        }
        handle = handlers.get(event.event)
        if handle is not None:
            await handle()
        return nri.Empty()

    async def _run(self, pod: nri.PodSandbox) -> None:
        await in_span("RunPodSandbox", pod, self._events.run_pod_sandbox(pod))

    async def _stop(self, pod: nri.PodSandbox) -> None:
        await in_span("StopPodSandbox", pod, self._events.stop_pod_sandbox(pod))

    async def _remove(self, pod: nri.PodSandbox) -> None:
        await in_span("RemovePodSandbox", pod, self._events.remove_pod_sandbox(pod))

    async def _remove_container_of(self, pod: nri.PodSandbox, container: nri.Container) -> None:
        await in_span(
            "RemoveContainer",
            pod,
            self._events.remove_container(container),
            container=container.name,
        )
