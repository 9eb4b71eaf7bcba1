"""Who else hears of a provider's books: the messages they are told in, and what counts them.

Separate from the servicer so that a provider's own modules can implement these without
knowing of a service.
"""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

from numalign.model.pod import Container, Pod
from numalign.provider.engine import Allocated
from numalign.v1 import hint_provider_pb2 as hp
from numalign.v1 import types_pb2 as pb

S = TypeVar("S")
S_contra = TypeVar("S_contra", contravariant=True)


class Books(Protocol[S_contra]):
    """A provider's books as messages."""

    def state_message(self, state: S_contra) -> hp.GetStateResponse:
        """The typed books; instance id, revision and reports are filled in by the servicer."""

    def allocatable_message(self, state: S_contra) -> hp.GetAllocatableResourcesResponse:
        """What can be given out at all; the instance id is filled in by the servicer."""

    def unhealthy_message(self, state: S_contra) -> pb.UnhealthyDevices | None:
        """Devices that pods hold and that are not healthy; None for books of other resources."""


class Observer(Protocol[S]):
    """Who counts what a provider does."""

    def started(self, state: S) -> None:
        """The provider is about to serve `state`."""

    def allocated(
        self, before: S, outcome: Allocated[S], pod: Pod, container: Container | None
    ) -> None:
        """An allocation of a container, or (None) of a pod, came to an end. Not of a dry run.

        `before` is the state it was decided on, with what the same admission did before it.
        """

    def changed(self, state: S) -> None:
        """The books changed."""


class SilentObserver(Generic[S]):
    """An observer that counts nothing."""

    def started(self, state: S) -> None:
        """Nothing."""

    def allocated(
        self, before: S, outcome: Allocated[S], pod: Pod, container: Container | None
    ) -> None:
        """Nothing."""

    def changed(self, state: S) -> None:
        """Nothing."""
