"""Asking the plugins on behalf of one container: the kubelet's checks, texts and a record.

Separate from the engine so that the decision reads without the ways in which a plugin can
fail, and separate from the port so that every implementation fails with the same texts.
"""

from __future__ import annotations

from numalign.device.allocation import PreferenceQuestion
from numalign.device.inventory import Endpoint, Inventory
from numalign.device.ports import DevicePlugins, PluginError
from numalign.model.ids import DeviceId
from numalign.provider.values import ContainerEdits, PluginCall


class PluginCaller:
    """Calls plugins for one decision and notes every call that was made, in `calls`."""

    __slots__ = ("_inventory", "_plugins", "calls")

    def __init__(self, plugins: DevicePlugins, inventory: Inventory) -> None:
        self._plugins = plugins
        self._inventory = inventory
        self.calls: list[PluginCall] = []

    async def preference(
        self, container: str, resource: str, question: PreferenceQuestion
    ) -> tuple[DeviceId, ...]:
        """The ids that the plugin prefers; none where it does not offer the call.

        Raises PluginError with the kubelet's text (DEV-33).
        """
        endpoint = self._endpoint(resource)
        options = endpoint.options
        if options is None or not options.get_preferred_allocation_available:
            return ()
        response: tuple[DeviceId, ...] = ()
        error = None
        try:
            _refuse_stopped(resource, endpoint)
            response = await self._plugins.get_preferred_allocation(
                resource, question.available, question.must_include, question.size
            )
        except PluginError as refused:
            error = str(refused)
        self.calls.append(
            PluginCall(
                container=container,
                resource=resource,
                call="GetPreferredAllocation",
                available=question.available,
                must_include=question.must_include,
                size=question.size,
                response=response,
                error=error,
            )
        )
        if error is not None:
            raise PluginError(f"device plugin GetPreferredAllocation rpc failed with err: {error}")
        return response

    async def allocate(
        self, container: str, resource: str, ids: tuple[DeviceId, ...]
    ) -> ContainerEdits:
        """Tell the plugin that the container gets `ids`.

        Raises PluginError: the kubelet's text without an endpoint, else the plugin's own,
        unchanged (DEV-38).
        """
        endpoint = self._inventory.of(resource).endpoint
        if endpoint is None:
            raise PluginError(f"unknown Device Plugin {resource}")
        error = None
        try:
            _refuse_stopped(resource, endpoint)
            return await self._plugins.allocate(resource, ids)
        except PluginError as refused:
            error = str(refused)
            raise
        finally:
            self.calls.append(
                PluginCall(
                    container=container,
                    resource=resource,
                    call="Allocate",
                    devices=ids,
                    error=error,
                )
            )

    async def pre_start(self, resource: str, ids: tuple[DeviceId, ...]) -> None:
        """Have the plugin make `ids` ready. Raises PluginError with the kubelet's text (DEV-41)."""
        try:
            _refuse_stopped(resource, self._endpoint(resource))
            await self._plugins.pre_start_container(resource, ids)
        except PluginError as refused:
            raise PluginError(
                f"device plugin PreStartContainer rpc failed with err: {refused}"
            ) from refused

    def pre_start_required(self, resource: str) -> bool:
        """Whether the plugin wants a call before each start. Raises PluginError (DEV-41)."""
        options = self._endpoint(resource).options
        return options is not None and options.pre_start_required

    def _endpoint(self, resource: str) -> Endpoint:
        endpoint = self._inventory.of(resource).endpoint
        if endpoint is None:
            raise PluginError(f"endpoint not found in cache for a registered resource: {resource}")
        return endpoint


def _refuse_stopped(resource: str, endpoint: Endpoint) -> None:
    """A stopped endpoint answers nothing (DEV-12); the kubelet's text has a memory dump inside."""
    if endpoint.stopped_at is not None:
        raise PluginError(f"endpoint {resource} has been stopped")
