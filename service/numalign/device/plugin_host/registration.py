"""The Registration service that device plugins call: check, connect, answer.

Separate from the host, which is the same for plugins that are found by the watcher.
"""

from __future__ import annotations

from pathlib import Path

from grpc import StatusCode

from numalign.device.plugin_host import texts
from numalign.device.plugin_host.host import PluginHost
from numalign.device.plugin_host.observer import HostObserver
from numalign.device.ports import PluginError
from numalign.errors import InvalidInput
from numalign.kube.deviceplugin.v1beta1 import api_pb2 as dp
from numalign.kube.deviceplugin.v1beta1 import api_pb2_grpc as dp_grpc
from numalign.model.resource_names import is_extended
from numalign.rpc.context import Context
from numalign.rpc.endpoint import plugin_socket


class RegistrationServicer(dp_grpc.RegistrationServicer):
    """Takes in plugins whose sockets are in `directory` (DEV-7)."""

    def __init__(self, host: PluginHost, directory: Path, observer: HostObserver) -> None:
        self._host = host
        self._directory = directory
        self._observer = observer

    async def Register(self, request: dp.RegisterRequest, context: Context) -> dp.Empty:  # noqa: N802 - the contract's
        """Connects to the plugin; the options of the request are not looked at (DEV-T16).

        A plugin whose socket is not in the directory is refused, which a kubelet does not do.
        """
        resource = request.resource_name
        self._observer.asked_to_register(resource)
        refusal = registration_refusal(request.version, resource)
        socket = self._directory
        if refusal is None:
            try:
                socket = plugin_socket(request.endpoint, self._directory)
            except InvalidInput as error:
                refusal = str(error)
        if refusal is not None:
            self._observer.refused(resource, refusal)
            await context.abort(StatusCode.UNKNOWN, refusal)
        try:
            await self._host.connect(resource, socket)
        except PluginError as error:
            await context.abort(StatusCode.UNKNOWN, str(error))
        return dp.Empty()


def registration_refusal(version: str, resource: str) -> str | None:
    """Why a plugin cannot register, in the kubelet's words; None if it can (DEV-4, DEV-7)."""
    if version != texts.API_VERSION:
        return texts.unsupported_version(version)
    if not is_extended(resource):
        return texts.invalid_resource(resource)
    return None
