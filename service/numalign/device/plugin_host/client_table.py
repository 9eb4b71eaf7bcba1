"""Which plugin counts as the one of a resource, while plugins come, go and replace each other.

Two strategies, chosen at start. The kubelet's table knows plugins by name alone, so that the
late end of an old one hits its successor (DEV-T7), and a newcomer that cannot be reached
drives the old one out (DEV-T8). The safe one compares plugins. Pure bookkeeping: whoever asks
opens and closes connections.
"""

from __future__ import annotations

from pathlib import Path
from typing import Generic, Protocol, TypeVar


class Client(Protocol):
    """A plugin at a socket."""

    @property
    def socket(self) -> Path:
        """Where it answers."""


C = TypeVar("C", bound=Client)


class ClientTable(Protocol[C]):
    """The plugins by resource."""

    def connecting(self, resource: str, client: C) -> None:
        """A plugin asks to be connected to."""

    def failed(self, resource: str, client: C) -> None:
        """It could not be."""

    def connected(self, resource: str, client: C) -> C | None:
        """It could; whom it replaces and who is to be left alone from now on."""

    def ended(self, resource: str, client: C) -> C | None:
        """The list of `client` ended; whose devices are therefore gone, if anybody's."""

    def removed(self, resource: str, socket: Path) -> C | None:
        """The watched plugin at `socket` was taken away; who is to be disconnected."""

    def clear(self) -> list[tuple[str, C]]:
        """Forget all; who there was."""


class KubeletTable(Generic[C]):
    """By name alone (DEV-8, DEV-10, DEV-11)."""

    def __init__(self) -> None:
        self._clients: dict[str, C] = {}

    def connecting(self, resource: str, client: C) -> None:
        """It takes the place of any other at once, which stays open and is forgotten."""
        self._clients[resource] = client

    def failed(self, resource: str, client: C) -> None:  # noqa: ARG002 - the name decides
        """The name is free, whoever had it before (DEV-T8)."""
        self._clients.pop(resource, None)

    def connected(self, resource: str, client: C) -> C | None:  # noqa: ARG002 - see `connecting`
        """Nobody is left alone: the old stream is still listened to."""
        return None

    def ended(self, resource: str, client: C) -> C | None:  # noqa: ARG002 - the name decides
        """Whoever has the name now (DEV-T7)."""
        return self._clients.pop(resource, None)

    def removed(self, resource: str, socket: Path) -> C | None:  # noqa: ARG002 - as above
        """Whoever has the name now, whatever its socket (DEV-8)."""
        return self._clients.pop(resource, None)

    def clear(self) -> list[tuple[str, C]]:
        """Forget all; who there was."""
        clients = list(self._clients.items())
        self._clients.clear()
        return clients


class SafeTable(Generic[C]):
    """A plugin has its resource from when it is connected until it ends or is replaced."""

    def __init__(self) -> None:
        self._clients: dict[str, C] = {}

    def connecting(self, resource: str, client: C) -> None:
        """Nothing: until it is connected, whoever is there stays."""

    def failed(self, resource: str, client: C) -> None:
        """Nothing: it never had the resource."""

    def connected(self, resource: str, client: C) -> C | None:
        """It replaces the old one, whose end then means nothing."""
        replaced = self._clients.get(resource)
        self._clients[resource] = client
        return replaced

    def ended(self, resource: str, client: C) -> C | None:
        """The one that ended, if it has the resource."""
        if self._clients.get(resource) is not client:
            return None
        del self._clients[resource]
        return client

    def removed(self, resource: str, socket: Path) -> C | None:
        """The one at that socket, if it has the resource: not its successor at another."""
        client = self._clients.get(resource)
        if client is None or client.socket != socket:
            return None
        del self._clients[resource]
        return client

    def clear(self) -> list[tuple[str, C]]:
        """Forget all; who there was."""
        clients = list(self._clients.items())
        self._clients.clear()
        return clients
