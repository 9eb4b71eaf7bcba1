"""What the author of a hint provider writes: a class with hints, allocate and release.

Everything else of the HintProvider contract (two phases, dry runs, restarts) is done around
it by the servicer, so that an author thinks of resources and nodes alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol, TypeAlias

from numalign.kube.core.v1 import core_pb2
from numalign.v1 import types_pb2 as pb
from numalign_client.provider.amounts import whole_pod
from numalign_client.provider.books import Books

HintValue: TypeAlias = tuple[Iterable[int] | None, bool]
"""NUMA nodes that could hold the request (None: any), and whether they are preferred."""

Hints: TypeAlias = Mapping[str, Sequence[HintValue] | None]
"""By resource: its hints, an empty list if it fits nowhere, None if it fits anywhere."""


class CannotAllocate(Exception):
    """Raised by `allocate`: the pod is rejected with this message, and nothing is kept."""

    def __init__(self, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason


class NotYet(Exception):
    """Raised by `hints` or `allocate`: nothing is wrong with the pod, but it is too early.

    `reason` is a word to match on; the agent asks again after `retry_after` seconds.
    """

    def __init__(self, message: str, *, reason: str, retry_after: float = 1.0) -> None:
        super().__init__(message)
        self.reason = reason
        self.retry_after = retry_after


class CannotJudge(Exception):
    """Raised by `hints` or `allocate`: the pod makes no sense to this provider, and is rejected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What a container gets of one resource: ids by NUMA node (-1: none), and what to apply."""

    ids_by_node: Mapping[int, Sequence[str]]
    edits: pb.ContainerEdits = field(default_factory=pb.ContainerEdits)


class SimpleHintProvider(ABC):
    """A provider of some resources. Subclass it, and run it with a `ProviderServer`.

    Calls come one at a time. `hints` and `allocate` only choose: an admission may still be
    refused, or only be a dry run, so what has an effect outside belongs into `committed`, and
    is undone in `release`.
    """

    name: ClassVar[str]
    resources: ClassVar[Sequence[str]]

    _books: Books | None = None

    @abstractmethod
    def hints(self, pod: core_pb2.Pod, container: core_pb2.Container) -> Hints | None:
        """Where the container's request could go; None if it asks for nothing of this kind."""

    @abstractmethod
    def allocate(
        self, pod: core_pb2.Pod, container: core_pb2.Container, nodes: frozenset[int] | None
    ) -> Mapping[str, Sequence[str] | Grant]:
        """What the container gets, by resource: ids, or a Grant.

        `nodes` are the NUMA nodes that were chosen for the container, None if any will do.
        Raises CannotAllocate.
        """

    def release(self, pod_uid: str) -> None:  # noqa: B027 - for authors who need it
        """The pod holds nothing any more. May be called for a pod that never held anything."""

    def committed(self, pod_uid: str) -> None:  # noqa: B027 - for authors who need it
        """The pod is admitted with what it was given. May be called again after a restart."""

    def take_back(self, pod_uid: str, resource: str, ids: Sequence[str]) -> None:
        """The books have lost these ids of a pod that still has them: it holds them again.

        Raises CannotAllocate if it cannot have them any more. By default it can, unless another
        pod was given one of them since. `committed` follows.
        """
        refuse_taken(self._bound(), pod_uid, resource, ids)

    def pod_hints(self, pod: core_pb2.Pod) -> Hints | None:
        """Where the request of the whole pod could go (scope `pod`).

        By default the hints of a container without a name that asks for the most that the
        pod's containers ask for at one time.
        """
        return self.hints(pod, whole_pod(pod, self.resources))

    def taken(self, resource: str) -> frozenset[str]:
        """Ids of a resource that anybody holds, the admission in hand included."""
        return self._bound().taken(resource)

    def bind(self, books: Books) -> None:
        """Give the provider its books; called by whoever serves it."""
        self._books = books

    def _bound(self) -> Books:
        if self._books is None:
            raise not_served(self.name)
        return self._books


class ServedProvider(Protocol):
    """What is asked of a provider while it is served: a `SimpleHintProvider`, or like one."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def resources(self) -> Sequence[str]:
        """What it serves."""

    def bind(self, books: Books) -> None:
        """Take its books."""

    def hints(self, pod: core_pb2.Pod, container: core_pb2.Container) -> Hints | None:
        """See SimpleHintProvider."""

    def pod_hints(self, pod: core_pb2.Pod) -> Hints | None:
        """See SimpleHintProvider."""

    def allocate(
        self, pod: core_pb2.Pod, container: core_pb2.Container, nodes: frozenset[int] | None
    ) -> Mapping[str, Sequence[str] | Grant]:
        """See SimpleHintProvider."""

    def release(self, pod_uid: str) -> None:
        """See SimpleHintProvider."""

    def committed(self, pod_uid: str) -> None:
        """See SimpleHintProvider."""

    def take_back(self, pod_uid: str, resource: str, ids: Sequence[str]) -> None:
        """See SimpleHintProvider."""


def refuse_taken(books: Books, pod_uid: str, resource: str, ids: Sequence[str]) -> None:
    """Raise CannotAllocate naming those of the ids that another pod holds."""
    others = sorted(books.taken(resource, besides=pod_uid).intersection(ids))
    if others:
        raise CannotAllocate(f"{resource} {', '.join(others)} held by another pod")


def not_served(name: str) -> RuntimeError:
    """The error of a provider that asks for its books before it has any."""
    return RuntimeError(f"provider {name} is not served yet, so it has no books")
