"""Running a provider: its server on a Unix socket, its state file, its registration."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Self

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from numalign.kube.pluginregistration.v1.api_pb2_grpc import add_RegistrationServicer_to_server
from numalign.v1.call_stream_pb2_grpc import add_CallStreamServicer_to_server
from numalign.v1.hint_provider_pb2_grpc import add_HintProviderServicer_to_server
from numalign_client.provider.base import ServedProvider
from numalign_client.provider.call_stream import CallStreamServicer
from numalign_client.provider.found import FoundProvider
from numalign_client.provider.registration import Registrar, Registration
from numalign_client.provider.servicer import HintProviderServicer
from numalign_client.provider.store import MemoryStore, PartStore, SqliteStore
from numalign_client.signals import wait_for_signal
from numalign_client.target import target_of

_WORKERS = 16
_SERVICE = "numalign.v1.HintProvider"


class ProviderServer:
    """Serves a provider on `socket`, as a context manager or with `run`.

    `state` is a SQLite file in which allocations outlive the process; without one they end
    with it. `topology_manager` is the Topology Manager's socket, at which the provider is
    registered, and again whenever that restarts; without one it is found by its socket in
    numalign's `providersRegistry`, or is to be listed in numalign's configuration. With
    `ignore_failure` admissions go on without the provider while it does not answer; `timeout` is
    how many seconds one call may take.

    >>> with ProviderServer(Licences(), "/run/licences/hints.sock"):
    ...     ...
    """

    def __init__(
        self,
        provider: ServedProvider,
        socket: str | os.PathLike[str],
        *,
        state: str | os.PathLike[str] | None = None,
        topology_manager: str | os.PathLike[str] | None = None,
        ignore_failure: bool = False,
        timeout: float | None = None,
    ) -> None:
        self._provider = provider
        self._target = target_of(socket)
        self._state = state
        self._topology_manager = topology_manager
        self._registration = Registration(
            name=provider.name,
            endpoint=self._target,
            ignore_failure=ignore_failure,
            timeout=timeout,
        )
        self._server: grpc.Server | None = None
        self._store: PartStore = MemoryStore()
        self._channel: grpc.Channel | None = None
        self.registrar: Registrar | None = None
        self.found = FoundProvider(provider.name)

    def start(self) -> None:
        """Listen, and register. Raises StateFileError, and RuntimeError for a socket."""
        if self._state is not None:
            self._store = SqliteStore(Path(self._state))
        server = grpc.server(ThreadPoolExecutor(_WORKERS))
        servicer = HintProviderServicer(self._provider, self._store, call_stream=True)
        add_HintProviderServicer_to_server(servicer, server)
        add_CallStreamServicer_to_server(CallStreamServicer(servicer), server)
        healthy = health.HealthServicer()
        for name in ("", _SERVICE):
            healthy.set(name, health_pb2.HealthCheckResponse.SERVING)
        health_pb2_grpc.add_HealthServicer_to_server(healthy, server)
        add_RegistrationServicer_to_server(self.found, server)
        server.add_insecure_port(self._target)
        server.start()
        self._server = server
        if self._topology_manager is not None:
            self._channel = grpc.insecure_channel(target_of(self._topology_manager))
            self.registrar = Registrar(self._channel, self._registration)
            self.registrar.start()

    def stop(self, grace: float = 2.0) -> None:
        """Stop taking calls, let those in hand end within `grace` seconds, close everything."""
        if self.registrar is not None:
            self.registrar.stop()
        if self._channel is not None:
            self._channel.close()
        if self._server is not None:
            self._server.stop(grace).wait()
        self._store.close()

    def run(self) -> None:
        """Serve until SIGTERM or SIGINT. Call it from the main thread."""
        with self:
            wait_for_signal()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()
