"""Telling the Topology Manager about a provider, and telling it again when it restarts.

The Topology Manager keeps registrations in memory, so somebody has to look now and then
whether it still knows the provider.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass

import grpc

from numalign.v1 import topology_pb2 as tm
from numalign.v1 import types_pb2 as pb
from numalign.v1.topology_pb2_grpc import TopologyManagerStub
from numalign_client.errors import AdmissionError, error_of, failed_call

_CALL_SECONDS = 5.0
_RETRYABLE = frozenset(
    {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
    }
)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """How a provider is to be called. `timeout` is in seconds; None is numalign's default.

    With `ignore_failure` admissions go on without the provider while it does not answer.
    """

    name: str
    endpoint: str
    ignore_failure: bool = False
    timeout: float | None = None

    def request(self) -> tm.RegisterHintProviderRequest:
        """The registration as it is sent."""
        request = tm.RegisterHintProviderRequest(
            name=self.name,
            endpoint=self.endpoint,
            failure_policy=pb.FAILURE_POLICY_IGNORE
            if self.ignore_failure
            else pb.FAILURE_POLICY_FAIL,
        )
        if self.timeout is not None:
            request.timeout.FromMilliseconds(round(self.timeout * 1000))
        return request


class Registrar:
    """Keeps one provider registered, in a thread of its own, until it is stopped.

    `refused` holds the error if the Topology Manager does not want the provider at all.
    """

    def __init__(
        self, channel: grpc.Channel, registration: Registration, *, interval: float = 2.0
    ) -> None:
        self._stub = TopologyManagerStub(channel)
        self._registration = registration
        self._interval = interval
        self._stopping = threading.Event()
        self._registered = threading.Event()
        self._thread = threading.Thread(target=self._run, name="registrar", daemon=True)
        self.refused: AdmissionError | None = None

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Stop, and wait for the call in hand."""
        self._stopping.set()
        self._thread.join()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the provider is registered for the first time, or refused.

        Returns whether it is registered. Raises the error if it was refused.
        """
        self._registered.wait(timeout)
        if self.refused is not None:
            raise self.refused
        return self._registered.is_set()

    def _run(self) -> None:
        was_down = False
        while not self._stopping.is_set():
            try:
                if not self._is_known():
                    self._stub.RegisterHintProvider(
                        self._registration.request(), timeout=_CALL_SECONDS
                    )
                    _log.info("registered as hint provider %s", self._registration.name)
                was_down = False
                self._registered.set()
            except grpc.RpcError as failed:
                error = error_of(failed_call(failed))
                if error.code not in _RETRYABLE:
                    self.refused = error
                    self._registered.set()
                    _log.error("registration refused: %s", error)
                    return
                if not was_down:
                    _log.warning("the Topology Manager cannot be reached: %s", error)
                was_down = True
            self._stopping.wait(self._interval)

    def _is_known(self) -> bool:
        listed = self._stub.ListHintProviders(tm.ListHintProvidersRequest(), timeout=_CALL_SECONDS)
        wanted = self._registration.request()
        return any(
            provider.name == wanted.name
            and provider.endpoint == wanted.endpoint
            and provider.failure_policy == (wanted.failure_policy or pb.FAILURE_POLICY_FAIL)
            for provider in listed.providers
        )
