"""What would become of pods: the request of a simulation, and its answers.

Separate from `results` and `answers`, which are about decisions that are made.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from numalign.v1 import admission_pb2 as ad
from numalign_client.answers import decision
from numalign_client.errors import AdmissionError, error_of_item
from numalign_client.objects import GivenPod, NodeLike, given_node
from numalign_client.results import Decision
from numalign_client.wire import Explain, explain_level, simulate_bytes


@dataclass(frozen=True, slots=True)
class Simulation:
    """What would be decided on pods over a copy of the node, in the order of the pods.

    - `outcomes`: for each pod a Decision, or the AdmissionError that `admit` would raise;
    - `notes`: what the copy does not have of the node, a sentence each;
    - `revision`: the node's, when it was copied.
    """

    outcomes: tuple[Decision | AdmissionError, ...]
    notes: tuple[str, ...]
    revision: int

    @property
    def all_admitted(self) -> bool:
        """Whether every pod could start."""
        return all(isinstance(one, Decision) and one.admitted for one in self.outcomes)


def simulate_request(
    pods: Iterable[GivenPod],
    *,
    policy: str,
    scope: str,
    configuration: str | os.PathLike[str],
    node: NodeLike | None,
    explain: Explain | str,
) -> bytes:
    """A serialised SimulateRequest that holds the pods' own bytes.

    Raises as `given_node` does, OSError for a file that cannot be read, and ValueError for an
    explain level that does not exist.
    """
    if isinstance(configuration, os.PathLike):
        with open(configuration, encoding="utf-8") as file:  # noqa: PTH123 - as in `objects`
            # An empty text would be the node's own; an empty file is one of defaults.
            configuration = file.read() or "{}"
    rest = ad.SimulateRequest(
        policy=policy,
        scope=scope,
        configuration=configuration,
        node=None if node is None else given_node(node),
        explain=explain_level(explain),
    )
    return simulate_bytes((pod.data for pod in pods), rest)


def simulation(messages: Iterable[ad.SimulateResponse], pods: Sequence[GivenPod]) -> Simulation:
    """The answers to `pods`. Raises AdmissionError for a verdict that is none known here."""
    copied = ad.SimulatedNode()
    answers: list[ad.SimulatedPod] = []
    for message in messages:
        if message.HasField("pod"):
            answers.append(message.pod)
        elif message.HasField("node"):
            copied = message.node
    outcomes = tuple(
        error_of_item(answer.error.code, answer.error.message)
        if answer.HasField("error")
        else decision(answer.decision, pod)
        for answer, pod in zip(answers, pods, strict=True)
    )
    return Simulation(outcomes, tuple(copied.notes), copied.revision)
