"""Third-party providers that register: taken in, remembered for the next process, and forgotten.

Separate from the registry, which asks the providers there are and keeps nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from numalign.errors import InvalidInput
from numalign.store.registered_providers import RegisteredProviders
from numalign.telemetry.logs import get_logger
from numalign.topology.provider_handle import ProviderHandle
from numalign.topology.registry import ProviderRegistry
from numalign.topology.turnstile import Turnstile
from numalign.v1 import topology_pb2 as tm

_log = get_logger("topology")

ThirdParty = Callable[[tm.RegisterHintProviderRequest], ProviderHandle]
"""Makes the handle of a third-party provider: a channel and its settings. Raises InvalidInput."""


class Registrations:
    """The registrations of one node. Everything here takes a turn."""

    def __init__(
        self,
        registry: ProviderRegistry,
        turnstile: Turnstile,
        kept: RegisteredProviders,
        third_party: ThirdParty,
    ) -> None:
        self._registry = registry
        self._turnstile = turnstile
        self._kept = kept
        self._third_party = third_party

    async def recall(self) -> None:
        """Know the providers again that registered with an earlier process; before any pod.

        One that cannot be asked any more, because the configuration lists another by its name or
        does not allow its socket, is left out with a warning.
        """
        for registration in await self._kept.known():
            request = tm.RegisterHintProviderRequest.FromString(registration)
            try:
                handle = self._third_party(request)
            except InvalidInput as error:
                _log.warning(
                    "a hint provider that has registered is not asked",
                    provider=request.name,
                    error=str(error),
                )
                continue
            if self._registry.named(request.name) is None:
                self._registry.recall(handle)
            else:
                await self._kept.forget(request.name)

    async def register(self, request: tm.RegisterHintProviderRequest) -> ProviderHandle:
        """Take a provider in. Raises what the registry does, InvalidInput and StateNotWritten."""
        handle = self._third_party(request)
        async with self._turnstile.turn():
            before = self._registry.named(handle.name)
            await self._registry.register(handle)
            if handle.registered:
                try:
                    await self._kept.keep(handle.name, request.SerializeToString())
                except BaseException:
                    # Whoever is told that it has failed has not registered.
                    if before is None:
                        await self._registry.deregister(handle.name)
                    raise
        return handle

    async def deregister(self, name: str) -> None:
        """Ask a provider no more. Raises what the registry does, and StateNotWritten."""
        async with self._turnstile.turn():
            self._registry.require_registered(name)
            # First: what could not be forgotten can be asked for again.
            await self._kept.forget(name)
            await self._registry.deregister(name)
        _log.info("a hint provider is not asked any more", provider=name)
