"""Refusing to place containers beside somebody else who does, by the services' own rules."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from numalign.config.settings import SecondOwner as Choice
from numalign.errors import StartError
from numalign.process.second_owner.facts import read_facts
from numalign.process.second_owner.rules import NodeFacts, Resource, second_owners
from numalign.telemetry.logs import get_logger
from numalign.telemetry.metrics import Metrics
from numalign_agent.nri.metrics import SECOND_OWNERS
from numalign_agent.nri.settings import NriSettings

_LOOK_SECONDS = 60.0
_STAGE = "second owner"

# What the services hand out where their configuration does not say: both, to be careful.
_POLICIES = {Resource.CPU: "static", Resource.MEMORY: "Static"}

_log = get_logger("nri")

Look = Callable[[Path], NodeFacts]


class SecondOwnerCheck:
    """Looks at the start, and every minute from then on."""

    def __init__(self, settings: NriSettings, metrics: Metrics, look: Look = read_facts) -> None:
        self._choice = settings.second_owner
        self._host_root = settings.host_root
        self._policies = {
            resource: settings.policies.get(resource) or policy
            for resource, policy in _POLICIES.items()
        }
        self._gauge = metrics.gauge(SECOND_OWNERS)
        self._look = look
        self._known: frozenset[str] = frozenset()

    async def refuse_start(self) -> None:
        """Raises StartError where there is a second owner and it is not tolerated."""
        found = await self._owners()
        if found and self._choice is Choice.REFUSE:
            raise StartError(
                _STAGE,
                f"{'; '.join(sorted(found))}: the same CPUs or memory would be handed out twice. "
                "Turn one of the two off, or set numalign.secondOwner to tolerate",
            )
        self._note(found)

    async def run(self) -> None:
        """Look again and again, and say what has changed; until cancelled."""
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            self._note(await self._owners())

    async def _owners(self) -> frozenset[str]:
        facts = await asyncio.to_thread(self._look, self._host_root)
        return frozenset(owner.text for owner in second_owners(facts, self._policies))

    def _note(self, found: frozenset[str]) -> None:
        for text in sorted(found - self._known):
            _log.warning(f"second owner: {text}")
        for text in sorted(self._known - found):
            _log.info(f"no second owner any more: {text}")
        self._known = found
        self._gauge.set(len(found))
