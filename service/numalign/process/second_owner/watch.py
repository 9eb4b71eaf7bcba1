"""What follows when somebody else hands out the same: at the start, and from then on.

At the start the service that would fight refuses (`secondOwner: refuse`) or says so and goes
on (`tolerate`). Afterwards it looks again every minute: a second owner that appears is logged,
counted, reported by GetStatus and, under `refuse`, takes the service's health to NOT_SERVING.
Calls are still answered: pods that run must be able to give back what they hold.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from numalign.config.settings import SecondOwner as Choice
from numalign.config.settings import Service, Settings
from numalign.errors import StartError
from numalign.process.part import Part
from numalign.process.second_owner.facts import read_facts
from numalign.process.second_owner.rules import NodeFacts, Resource, SecondOwner, second_owners
from numalign.telemetry.logs import get_logger
from numalign.telemetry.metrics import Gauge, Metrics

LOOK_SECONDS = 60.0
"""How often the node is looked at."""

METRIC = "numalign_second_owners"
STAGE = "second owner"

SETTINGS = {
    "second_owner": "numalign.secondOwner",
    "host_root": "numalign.hostRoot",
    "kubelet_configz": "numalign.kubeletConfigz",
}
"""The settings of a watch, with their paths; new ones are taken into force while it runs."""

_WATCHED = {Service.CPU: Resource.CPU, Service.MEMORY: Resource.MEMORY}
_CALLED = {Resource.CPU: "CPUs", Resource.MEMORY: "memory"}
_log = get_logger("second_owner")

Look = Callable[[Settings], NodeFacts]
"""Looks at the node; blocks."""


SetServing = Callable[[bool], None]
"""Says whether a service is to be used."""


class SecondOwnerWatch:
    """Watches for the services of one process. `refuse_start` first, then `run`."""

    def __init__(
        self,
        settings: Settings,
        services: Iterable[Service],
        look: Look | None = None,
    ) -> None:
        self._settings = settings
        self._resources = tuple(_WATCHED[s] for s in services if s in _WATCHED)
        self._look = look or _look
        self._owners: tuple[SecondOwner, ...] = ()
        self._unreadable: tuple[str, ...] = ()
        self._look_now = asyncio.Event()
        self._gauge: Gauge | None = None
        self._set_serving: Mapping[Resource, SetServing] = {}
        self._usable: dict[Resource, bool] = {}

    async def refuse_start(self) -> None:
        """Look for the first time. Raises StartError where a second owner is not tolerated."""
        owners = await self._owners_now()
        if owners and self._settings.second_owner is Choice.REFUSE:
            raise StartError(STAGE, _refusal(owners))
        self._note(owners)

    def tell(self, metrics: Metrics, set_serving: Mapping[Service, SetServing]) -> None:
        """Count second owners there from now on, and take the health of services there."""
        if self._resources:
            self._gauge = metrics.gauge(METRIC)
        self._set_serving = {
            _WATCHED[service]: say for service, say in set_serving.items() if service in _WATCHED
        }
        self._note(self._owners)

    def reporting(self, parts: Sequence[Part]) -> tuple[Part, ...]:
        """The parts, with what there is to say about second owners among their reports."""
        return tuple(self._reporting(part) for part in parts)

    async def run(self) -> None:
        """Look again and again; never returns."""
        while True:
            try:
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._look_now.wait()
            except TimeoutError:
                pass
            self._look_now.clear()
            self._note(await self._owners_now())

    def reload(self, settings: Settings) -> tuple[str, ...]:
        """Take new settings into force, and look at once; the paths of what was put to use."""
        old, self._settings = self._settings, settings
        self._look_now.set()
        return tuple(
            path for name, path in SETTINGS.items() if getattr(old, name) != getattr(settings, name)
        )

    def _reports(self, service: Service) -> tuple[str, ...]:
        resource = _WATCHED.get(service)
        return tuple(_report(owner) for owner in self._owners if owner.resource is resource)

    def _reporting(self, part: Part) -> Part:
        def reports() -> tuple[str, ...]:
            return (*part.reports(), *self._reports(part.service))

        return replace(part, reports=reports)

    async def _owners_now(self) -> tuple[SecondOwner, ...]:
        if not self._resources:
            return ()
        facts = await asyncio.to_thread(self._look, self._settings)
        if facts.unreadable != self._unreadable:
            self._unreadable = facts.unreadable
            for text in facts.unreadable:
                _log.warning("cannot look for a second owner", where=text)
        policies = {
            Resource.CPU: self._settings.cpu.policy,
            Resource.MEMORY: self._settings.memory.policy,
        }
        owners = second_owners(facts, policies)
        return tuple(owner for owner in owners if owner.resource in self._resources)

    def _note(self, owners: tuple[SecondOwner, ...]) -> None:
        for owner in owners:
            if owner not in self._owners:
                _log.warning(_report(owner), resource=owner.resource.value)
        for owner in self._owners:
            if owner not in owners:
                _log.info(f"no longer so: {owner.text}", resource=owner.resource.value)
        self._owners = owners
        refuse = self._settings.second_owner is Choice.REFUSE
        for resource in self._resources:
            count = sum(owner.resource is resource for owner in owners)
            if self._gauge is not None:
                self._gauge.labels(resource.value).set(count)
            usable = not (count and refuse)
            if resource in self._set_serving and usable is not self._usable.get(resource, True):
                self._set_serving[resource](usable)
                self._usable[resource] = usable


def _look(settings: Settings) -> NodeFacts:
    facts = read_facts(settings.host_root)
    if settings.kubelet_configz is None:
        return facts
    # Only where it is configured: HTTP and TLS cost memory.
    from numalign.process.second_owner.configz import ask_kubelet  # noqa: PLC0415

    policies, unreadable = ask_kubelet(settings.kubelet_configz)
    return replace(
        facts,
        kubelet=(*facts.kubelet, *policies),
        unreadable=(*facts.unreadable, *unreadable),
    )


def _report(owner: SecondOwner) -> str:
    return f"second owner of {_CALLED[owner.resource]}: {owner.text}"


def _refusal(owners: tuple[SecondOwner, ...]) -> str:
    found = "; ".join(dict.fromkeys(owner.text for owner in owners))
    called = " and ".join(dict.fromkeys(_CALLED[owner.resource] for owner in owners))
    return (
        f"{found}: the same {called} would be handed out twice. Turn one of the two off, or set "
        "numalign.secondOwner to tolerate"
    )
