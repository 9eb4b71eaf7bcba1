"""A node whose spans are received, for tests of traces that begin at the agent or its plugin."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import yaml
from tests.integration.world import World
from tests.unit.process.observed_world import GPU, write
from tests.unit.telemetry.otlp import Receiver

SECONDS = 60
SERVER, CLIENT, INNER = 2, 3, 1


def manifest(directory: Path, name: str, cpu: str) -> None:
    """A static pod of this node: the plugin finds its spec without an API server."""
    resources = {"cpu": cpu, "memory": "1Gi", GPU: "1"}
    container = {
        "name": "app",
        "image": "app",
        "resources": {"limits": resources, "requests": resources},
    }
    document = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [container]},
    }
    (directory / "manifests").mkdir(exist_ok=True)
    (directory / "manifests" / f"{name}.yaml").write_text(yaml.safe_dump(document))


@asynccontextmanager
async def node(directory: Path) -> AsyncIterator[None]:
    """The services in one process, which sends what it has when it stops."""
    world = World(directory, together=True, seed=0)
    write(directory)
    try:
        await world.start()
        await world.ready()
        yield
        await world.stop("all")
    finally:
        await world.close()


class Spans:
    """All spans that were sent, and which is below which."""

    def __init__(self, receiver: Receiver) -> None:
        self.all = receiver.spans()
        self._by_id = {span.span_id: span for span in self.all}

    def one(self, name: str) -> Any:
        (found,) = [span for span in self.all if span.name == name]
        return found

    def below(self, root: Any) -> list[Any]:
        return [span for span in self.all if span.trace_id == root.trace_id]

    def above(self, span: Any) -> list[str]:
        """Names of what is above it, up to the root."""
        found = []
        while (parent := self._by_id.get(span.parent_span_id)) is not None:
            found.append(parent.name)
            span = parent
        return found


async def received(receiver: Receiver, name: str) -> None:
    """Wait until the calling side of a call has arrived."""

    def there() -> bool:
        return any(span.name == name and span.kind == CLIENT for span in receiver.spans())

    async with asyncio.timeout(SECONDS):
        while not there():  # noqa: ASYNC110 - another process sends it
            await asyncio.sleep(0.02)


def lines(log: Path, event: str) -> list[dict[str, Any]]:
    every = map(json.loads, log.read_text().splitlines())
    return [line for line in every if line["event"] == event]
