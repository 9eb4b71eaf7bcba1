"""What a source of pod specs is, and how several are asked as one."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from numalign.telemetry.logs import get_logger
from numalign_agent.pod import CONFIG_HASH, CONFIG_MIRROR, AgentPod

_log = get_logger("nri")

PodDocument = Mapping[str, Any]
"""A v1.Pod object as JSON has it."""


class SourceFailed(Exception):
    """A source could not be asked; the text names it and says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The pod that is looked for, as its sandbox names it."""

    uid: str
    name: str
    namespace: str
    annotations: Mapping[str, str]

    @property
    def config_hash(self) -> str:
        """What a static pod is known by; empty for others."""
        return self.annotations.get(CONFIG_HASH, "")

    def is_shown_by(self, document: PodDocument) -> bool:
        """Whether an object is this pod, or the mirror of this static pod."""
        pod = AgentPod(document)
        if (pod.namespace, pod.name) != (self.namespace, self.name):
            return False
        return pod.uid == self.uid or (
            bool(self.config_hash)
            and self.config_hash in {pod.annotations.get(CONFIG_MIRROR), pod.uid}
        )


class PodSpecs(Protocol):
    """One source of pod specs."""

    @property
    def name(self) -> str:
        """What it is called in logs."""

    async def find(self, wanted: Wanted) -> PodDocument | None:
        """The pod's object; None if the source does not have it. Raises SourceFailed."""

    async def close(self) -> None:
        """Give back what it holds."""


class FirstOf:
    """Several sources, asked in order until one has the pod.

    What a source fails with is logged once, until it answers again; the next one is asked.
    """

    def __init__(self, sources: Sequence[PodSpecs]) -> None:
        self._sources = tuple(sources)
        self._failing: set[str] = set()

    async def find(self, wanted: Wanted, seconds: float) -> PodDocument | None:
        """The pod's object; None if no source has it or none has answered within `seconds`."""
        name = ""
        try:
            async with asyncio.timeout(seconds):
                for source in self._sources:
                    name = source.name
                    found = await self._ask(source, wanted)
                    if found is not None:
                        return found
        except TimeoutError:
            self._failed(name, f"no answer within {seconds:g} s")
        return None

    async def close(self) -> None:
        """Close every source."""
        for source in self._sources:
            await source.close()

    async def _ask(self, source: PodSpecs, wanted: Wanted) -> PodDocument | None:
        try:
            found = await source.find(wanted)
        except SourceFailed as error:
            self._failed(source.name, str(error))
            return None
        if source.name in self._failing:
            self._failing.discard(source.name)
            _log.info("pod specs can be had again", source=source.name)
        return found

    def _failed(self, name: str, error: str) -> None:
        if name not in self._failing:
            self._failing.add(name)
            _log.warning("pod specs cannot be had", source=name, error=error)
