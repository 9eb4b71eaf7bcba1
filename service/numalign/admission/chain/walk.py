"""Walking a chain around the Topology Manager, which is asked last for keeps.

A refusal is reported in the chain's order (ADM-3), but nothing is allocated while a handler
can still refuse: handlers behind the Topology Manager are asked first, and a dry run tells
whether it would have refused before them. `allocate_in_place` is the kubelet's own way, where
what was allocated stays although a later handler refuses (TOPO-8).

Separate from the handlers, and from who the Topology Manager is: it is a port here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Generic, Protocol, TypeAlias, TypeVar

from numalign.admission.chain.built_in import Chain
from numalign.admission.chain.question import Answer, Handler, Question
from numalign.admission.handlers.admit_pod import AdmitPod
from numalign.admission.handlers.predicates import DeviceCounts
from numalign.admission.handlers.verdict import ADMITTED, Verdict
from numalign.model.resource_names import is_extended

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

ALLOCATE_RESOURCES = "topology-manager"
"""The name of the Topology Manager as a handler."""


class End(StrEnum):
    """How a walk ends."""

    ADMITTED = "admitted"
    REJECTED = "rejected"
    DEFERRED = "deferred"


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocated(Generic[R_co]):
    """What the Topology Manager decided, with its own `response`.

    `devices` are those handed out once the pod has its own (PRED-4).
    """

    end: End
    response: R_co
    devices: DeviceCounts


class TopologyPort(Protocol[R_co]):
    """The Topology Manager, about the pod of the question."""

    async def allocate(self, *, dry_run: bool) -> Allocated[R_co]:
        """Decide on the pod; with `dry_run` nothing is kept."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome(Generic[R_co]):
    """The end of a walk.

    `handler` refused or deferred, with this verdict; empty for an admission. `victims` are to
    end first. `retry_after` are the seconds to wait where the handler says so. `response` is
    the Topology Manager's where it decided the matter. `warnings` come from all that were asked.
    """

    end: End
    handler: str = ""
    verdict: Verdict = ADMITTED
    victims: tuple[AdmitPod, ...] = ()
    retry_after: float | None = None
    response: R_co | None = None
    warnings: tuple[str, ...] = ()


Walk: TypeAlias = Callable[[Chain, Question, TopologyPort[R]], Awaitable[Outcome[R]]]
"""A way to walk a chain: `allocate_last` or `allocate_in_place`."""


async def allocate_last(chain: Chain, question: Question, topology: TopologyPort[R]) -> Outcome[R]:
    """Ask everybody, then allocate.

    Victims are named only if nobody refuses the pod, so that no pod ends in vain. The dry run
    costs a call, so it is made only where another handler refuses or names victims, or where
    the fit depends on the devices that the pod would get.
    """
    asked = _Asked()
    stopped: Outcome[R] | None = await _walk(chain.before, question, asked)
    if stopped is not None:
        return asked.told(stopped)
    tried: Allocated[R] | None = None
    if _asks_for_devices(question.pod):
        tried = await topology.allocate(dry_run=True)
        if tried.end is not End.ADMITTED:
            return asked.told(_decided(tried))
        question = replace(question, devices=tried.devices)
    stopped = await _walk(chain.behind, question, asked, spare_victims=True)
    if stopped is None:
        stopped = await _walk(chain.soft, question, asked, End.DEFERRED)
    if stopped is None:
        return asked.told(_decided(await topology.allocate(dry_run=False)))
    if tried is None:
        tried = await topology.allocate(dry_run=True)
    return asked.told(stopped if tried.end is End.ADMITTED else _decided(tried))


async def allocate_in_place(
    chain: Chain, question: Question, topology: TopologyPort[R]
) -> Outcome[R]:
    """Allocate where the kubelet does; what is allocated stays, whoever refuses behind it.

    Victims are named as soon as they are found, although a later handler may refuse the pod.
    Remote handlers behind the allocation are asked before it, as they may fail; what they say
    counts in their place.
    """
    asked = _Asked()
    stopped: Outcome[R] | None = await _walk(chain.before, question, asked)
    if stopped is not None:
        return asked.told(stopped)
    remote = [handler for handler in (*chain.behind, *chain.soft) if handler.is_remote]
    if remote:
        early = question
        if _asks_for_devices(question.pod):
            tried = await topology.allocate(dry_run=True)
            early = replace(question, devices=tried.devices)
        for handler in remote:
            await asked.answer(handler, early)
    allocated = await topology.allocate(dry_run=False)
    if allocated.end is not End.ADMITTED:
        return asked.told(_decided(allocated))
    question = replace(question, devices=allocated.devices)
    stopped = await _walk(chain.behind, question, asked)
    if stopped is None:
        stopped = await _walk(chain.soft, question, asked, End.DEFERRED)
    return asked.told(_decided(allocated) if stopped is None else stopped)


class _Asked:
    """What handlers answered during one walk; nobody is asked twice."""

    def __init__(self) -> None:
        self._answers: dict[str, Answer] = {}

    async def answer(self, handler: Handler, question: Question) -> Answer:
        known = self._answers.get(handler.name)
        if known is None:
            known = self._answers[handler.name] = await handler.ask(question)
        return known

    def told(self, outcome: Outcome[R]) -> Outcome[R]:
        """The outcome with the warnings of all that were asked."""
        warnings = tuple(w for answer in self._answers.values() for w in answer.warnings)
        return replace(outcome, warnings=warnings) if warnings else outcome


async def _walk(
    handlers: Iterable[Handler],
    question: Question,
    asked: _Asked,
    end: End = End.REJECTED,
    *,
    spare_victims: bool = False,
) -> Outcome[R] | None:
    """Where the handlers stop the pod: the first refusal, or victims to end; None is nowhere.

    `end` is what a refusal means. With `spare_victims` a later refusal comes before victims.
    """
    named: Outcome[R] | None = None
    for handler in handlers:
        answer = await asked.answer(handler, question)
        if not answer.verdict.admit:
            return Outcome(
                end=end if answer.retry_after is None else End.DEFERRED,
                handler=handler.name,
                verdict=answer.verdict,
                retry_after=answer.retry_after,
            )
        if answer.victims and named is None:
            named = Outcome(end=End.DEFERRED, handler=handler.name, victims=answer.victims)
            if not spare_victims:
                return named
    return named


def _asks_for_devices(pod: AdmitPod) -> bool:
    """Whether the pod names a resource that devices may stand behind."""
    return any(
        is_extended(name)
        for container in pod.pod.all_containers()
        for amounts in (container.resources.limits, container.resources.requests)
        for name in amounts
    )


def _decided(allocated: Allocated[R]) -> Outcome[R]:
    return Outcome(
        end=allocated.end,
        handler="" if allocated.end is End.ADMITTED else ALLOCATE_RESOURCES,
        response=allocated.response,
    )
