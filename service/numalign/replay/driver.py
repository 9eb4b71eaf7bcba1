"""How a replay holds the services: started from a document, stopped, started again.

Separate from what is replayed, so that the same steps run inside the process and against
processes behind sockets.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from grpc import aio

from numalign.config.settings import Service


class Driver(Protocol):
    """The services of one node over one state directory."""

    @property
    def state_directory(self) -> Path:
        """Where the services keep their state, also between a close and the next open."""

    async def open(self, document: Mapping[str, object]) -> None:
        """Start the services from a configuration document.

        Raises StartError where a service refuses to start, and ConfigError for a document
        that cannot be used; nothing runs then.
        """

    async def reload(self, document: Mapping[str, object]) -> None:
        """Have the device service read a new document."""

    def channel(self, service: Service) -> aio.Channel:
        """A channel to one of the running services."""

    async def close(self) -> None:
        """Stop the services; the state stays. Nothing to do where none runs."""
