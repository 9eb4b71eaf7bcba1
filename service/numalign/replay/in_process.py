"""All services in this process: the default way to replay."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from grpc import aio

from numalign.config.loader import load_settings
from numalign.config.settings import Service, Settings
from numalign.process.node import Node
from numalign.v1.control_pb2 import ReloadRequest
from numalign.v1.control_pb2_grpc import ControlStub

CONFIG_FILE = "config.json"
STATE = "state"
RUN = "run"


class InProcess:
    """A driver over an embedded node; everything it writes is below `directory`."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._config = directory / CONFIG_FILE
        self._node: Node | None = None

    @property
    def state_directory(self) -> Path:
        """Where the node keeps its state."""
        return self._directory / STATE

    async def open(self, document: Mapping[str, object]) -> None:
        """Open the node from the document. Raises StartError and ConfigError."""
        write_config(self._directory, document)
        self._node = await Node.open(self._settings(), self._settings)
        await self._node.serving()

    async def reload(self, document: Mapping[str, object]) -> None:
        """Write the new document and ask for it to be read."""
        write_config(self._directory, document)
        await ControlStub(self.channel(Service.DEVICE)).Reload(ReloadRequest())

    def channel(self, service: Service) -> aio.Channel:
        """A channel inside the process. Raises RuntimeError where no node is open."""
        if self._node is None:
            raise RuntimeError("no node is open")
        return self._node.channel(service)

    async def close(self) -> None:
        """Close the node."""
        node, self._node = self._node, None
        if node is not None:
            await node.close()

    def _settings(self) -> Settings:
        return load_settings(self._config, {}, is_root=False)


def write_config(directory: Path, document: Mapping[str, object]) -> Path:
    """Write a document with its directories stated; the path of the file."""
    section = document["numalign"]
    if not isinstance(section, Mapping):
        raise TypeError("the document has no numalign section")
    places = {"stateDirectory": str(directory / STATE), "runtimeDirectory": str(directory / RUN)}
    path = directory / CONFIG_FILE
    path.write_text(json.dumps({**document, "numalign": {**section, **places}}), encoding="utf-8")
    return path
