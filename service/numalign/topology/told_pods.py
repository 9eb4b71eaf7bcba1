"""What is told of a stream of pods, as messages, and to the observer once it holds.

Separate from the servicer, which serves single calls: what is told here depends on what was
told before.
"""

from __future__ import annotations

from typing import Protocol

from numalign.errors import NumalignError
from numalign.rpc.status import status_of
from numalign.topology.decision import AdmitCall, Decision
from numalign.topology.pod_stream import DecidedPod, PodEvent, about
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import topology_pb2 as tm


class DecidedListener(Protocol):
    """Hears what became of pods."""

    def decided(self, call: AdmitCall, decision: Decision, seconds: float) -> None:
        """An Admit came to a decision, `seconds` after it was asked for."""


class ToldPods:
    """One stream: the pods that are decided on and not settled."""

    def __init__(self, observer: DecidedListener) -> None:
        self._observer = observer
        self._unsettled: list[DecidedPod] = []

    def message(self, event: PodEvent) -> tm.TopologyManagerAdmitPodsResponse:
        """What is sent of an event."""
        message = tm.TopologyManagerAdmitPodsResponse()
        if event.decided is not None:
            self._unsettled.append(event.decided)
            outcome = event.decided.outcome
            if isinstance(outcome, NumalignError):
                message.error.CopyFrom(stream_error(outcome))
            else:
                message.decision.CopyFrom(outcome.response)
        if event.settled:
            settled, self._unsettled = self._unsettled, []
            message.settled.SetInParent()
            if event.lost is not None:
                message.settled.error.CopyFrom(stream_error(event.lost))
            else:
                message.settled.revisions.extend(map(_revision, settled))
                for decided in settled:
                    self._observe(decided)
        return message

    def _observe(self, decided: DecidedPod) -> None:
        call, outcome = decided.asked.call, decided.outcome
        if isinstance(call, NumalignError) or isinstance(outcome, NumalignError):
            return
        with about("pod settled", call):
            self._observer.decided(call, outcome, decided.seconds)


def stream_error(error: NumalignError) -> ad.StreamError:
    """An error as an item of a stream."""
    code, message = status_of(error)
    return ad.StreamError(code=code.value[0], message=message)


def _revision(decided: DecidedPod) -> int:
    outcome = decided.outcome
    return 0 if isinstance(outcome, NumalignError) else outcome.response.revision
