"""What a chain is asked, and what a handler of it answers.

Separate so that handlers of others can be written against it without the built-in ones.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum

from numalign.admission.handlers.admit_pod import AdmitPod
from numalign.admission.handlers.node_usage import NodeUsage
from numalign.admission.handlers.node_view import NodeView
from numalign.admission.handlers.predicates import NO_DEVICES, DeviceCounts
from numalign.admission.handlers.verdict import Verdict
from numalign.kubelet_files.allocation_checkpoint import PodAllocation


class Operation(StrEnum):
    """Why the chain is asked (ADM-1)."""

    ADD = "add"
    RESIZE = "resize"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFacts:
    """The node at this moment.

    `node` None: it cannot be read. `fresh_node` reads it anew, None where nobody can; then
    `caller_reads_node` says that whoever asks about the pod can, and asks again with it.
    `conditions` are the eviction manager's, `shutting_down` is the shutdown notification.
    """

    node: NodeView | None
    fresh_node: Callable[[], NodeView | None] | None = None
    caller_reads_node: bool = False
    conditions: tuple[str, ...] = ()
    shutting_down: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """The serialised pod and Node object, for handlers that read these themselves.

    `node` is empty where no Node object is known. `dry_run`: the caller only wants to know.
    """

    pod: bytes = b""
    node: bytes = b""
    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One pod to decide on (ADM-6, DES-1).

    `pod` has what it was admitted with for an addition, what it wants for a resize. `others`
    are the other active pods with what they were admitted with. `allocation` is the pod's own,
    `devices` what is handed out now. `usage` is what the others take, None: not summed up yet.
    """

    pod: AdmitPod
    facts: NodeFacts
    others: tuple[AdmitPod, ...] = ()
    operation: Operation = Operation.ADD
    allocation: PodAllocation | None = None
    devices: DeviceCounts = NO_DEVICES
    usage: NodeUsage | None = None
    sent: Sent = Sent()


@dataclass(frozen=True, slots=True)
class Answer:
    """A handler's verdict, and the pods that must end for it, in the order to end them.

    With `retry_after` a refusal is none: it is too early, and the pod is asked about again
    after so many seconds. `warnings` are for the caller, whatever becomes of the pod.
    """

    verdict: Verdict
    victims: tuple[AdmitPod, ...] = ()
    retry_after: float | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Handler:
    """One step of a chain, by the name that an answer gives it.

    A remote one is asked outside this process. It may raise Unavailable: then there is no
    decision, so nothing may have been allocated when it is asked.
    """

    name: str
    ask: Callable[[Question], Awaitable[Answer]]
    is_remote: bool = False


def deciding(name: str, decide: Callable[[Question], Answer | Verdict]) -> Handler:
    """A handler that decides without waiting for anybody."""

    async def ask(question: Question) -> Answer:
        answer = decide(question)
        return Answer(answer) if isinstance(answer, Verdict) else answer

    return Handler(name, ask)
