"""What others ask about a pod's worker (WRK-12). Pure."""

from __future__ import annotations

from numalign_agent.workers.work import PodWork, WorkState


def known_terminated(work: PodWork | None) -> bool:
    """Whether all containers of the pod are known to have stopped."""
    return work is not None and work.known_terminated


def may_run(work: PodWork | None, *, tidied: bool) -> bool:
    """Whether containers could be running. `tidied`: housekeeping was done at least once."""
    return not tidied if work is None else not work.known_terminated


def is_finished(work: PodWork | None, *, tidied: bool) -> bool:
    """Whether nothing is left to do."""
    return tidied if work is None else work.state is WorkState.FINISHED


def end_requested(work: PodWork | None) -> bool:
    """Whether the pod is to end."""
    return work is not None and work.end_requested


def should_be_ending(work: PodWork | None, *, tidied: bool) -> bool:
    """Whether containers should be ending: the worker has begun to end them."""
    return tidied if work is None else work.observed_end


def runtime_goes(work: PodWork | None, *, tidied: bool) -> bool:
    """Whether what the runtime has of the pod should be removed."""
    return tidied if work is None else work.known_terminated


def content_goes(work: PodWork | None, *, tidied: bool) -> bool:
    """Whether logs and dead containers should be removed too."""
    return tidied if work is None else work.content_goes
