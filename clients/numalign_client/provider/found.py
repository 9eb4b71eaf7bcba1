"""Saying who is there to whoever finds the socket of a provider: the kubelet's plugin registration.

Separate from the provider itself, which is the same whether it is found or registers itself.
"""

from __future__ import annotations

import logging
import threading

from numalign.kube.pluginregistration.v1 import api_pb2 as pr
from numalign.kube.pluginregistration.v1 import api_pb2_grpc as pr_grpc
from numalign_client.provider.servicer import Context

_TYPE, _VERSION = "numalign.v1.HintProvider", "v1"

_log = logging.getLogger(__name__)


class FoundProvider(pr_grpc.RegistrationServicer):
    """Answers a plugin watcher. `registered` is set once one has taken the provider in."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.registered = threading.Event()

    def GetInfo(self, request: pr.InfoRequest, context: Context) -> pr.PluginInfo:  # noqa: ARG002, N802 - the contract's
        """Says who is there; it serves where it was found."""
        return pr.PluginInfo(type=_TYPE, name=self._name, supported_versions=[_VERSION])

    def NotifyRegistrationStatus(  # noqa: N802 - the contract's
        self,
        request: pr.RegistrationStatus,
        context: Context,  # noqa: ARG002 - the contract's
    ) -> pr.RegistrationStatusResponse:
        """Hears whether it was taken in; refused, it is found again later."""
        if request.plugin_registered:
            self.registered.set()
            _log.info("found as hint provider %s", self._name)
        else:
            _log.error("not taken in as hint provider %s: %s", self._name, request.error)
        return pr.RegistrationStatusResponse()
