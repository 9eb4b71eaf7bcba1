"""Says how a decision was reached, while the providers still hold it tentatively.

Separate from the explanations themselves, which are pure: this one asks the providers for
the facts behind a refusal, and only then, so that an admission costs nothing more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol

from numalign.model.pod import Container, Pod
from numalign.topology.explain_failure import allocation_obstacle
from numalign.topology.explain_refusal import fault_obstacle, merge_obstacle
from numalign.topology.explain_summary import admission, rejection
from numalign.topology.explanation import Found, Obstacle, container_of
from numalign.topology.messages import (
    explanation_to_message,
    found_from_messages,
    merge_to_message,
)
from numalign.topology.numa_info import NumaInfo
from numalign.topology.policy import Policy
from numalign.topology.scope import MergeRecord, ScopeResult
from numalign.v1 import types_pb2 as pb

MOST_MERGE_BYTES = 1 << 20
"""How long the merges of one explanation are at most, so that a message has room for all else."""


class Way(Protocol):
    """How a decision was reached, not in words yet."""

    def __call__(self, level: pb.ExplainLevel.ValueType, elsewhere: str = "") -> pb.Explanation:
        """The words; `elsewhere` is what else would have taken a pod that was refused."""


class AdmissionNotes(Protocol):
    """What is known of the calls of one admission, and the way to the facts; see `Fanout`."""

    @property
    def allocate_calls(self) -> Sequence[pb.AllocateCall]:
        """Every allocate call up to the first that failed."""

    @property
    def plugin_calls(self) -> Sequence[pb.PluginCall]:
        """Every call of a device plugin."""

    async def facts(self, pod: Pod, container: Container | None) -> list[pb.ResourceFacts]:
        """What stands behind the hints for a container, or (None) for the pod."""


class Explainer:
    """Explains the decisions of one policy and scope; `numa` is None under policy `none`."""

    def __init__(self, policy: Policy, numa: NumaInfo | None, scope: str) -> None:
        self._policy = policy
        self._numa = numa
        self._scope = scope

    async def __call__(
        self, pod: Pod, result: ScopeResult, notes: AdmissionNotes, level: pb.ExplainLevel.ValueType
    ) -> pb.Explanation:
        """The summary and what stood in the way; at FULL every merge and call as well.

        Raises what `notes.facts` raises.
        """
        if level < pb.EXPLAIN_LEVEL_SUMMARY:
            return pb.Explanation()
        return (await self.way(pod, result, notes))(level)

    async def way(self, pod: Pod, result: ScopeResult, notes: AdmissionNotes) -> Way:
        """What an explanation needs, asked for now and put into words whenever it is wanted.

        Raises what `notes.facts` raises.
        """
        facts = await self._facts(pod, result, notes)
        return partial(self._explain, pod, result, notes, facts)

    async def _facts(
        self, pod: Pod, result: ScopeResult, notes: AdmissionNotes
    ) -> Sequence[pb.ResourceFacts]:
        """The facts behind a refusal, which providers know until it is undone."""
        if result.admitted or result.keeps_nothing:
            return ()
        merge = self._refused_merge(result)
        container = notes.allocate_calls[-1].container if merge is None else merge.container
        return await notes.facts(pod, container_of(pod, container))

    def _explain(
        self,
        pod: Pod,
        result: ScopeResult,
        notes: AdmissionNotes,
        facts: Sequence[pb.ResourceFacts],
        level: pb.ExplainLevel.ValueType,
        elsewhere: str = "",
    ) -> pb.Explanation:
        if result.admitted:
            explained = admission(result, self._policy, self._numa, self._scope)
        else:
            obstacle = self._obstacle(pod, result, notes, found_from_messages(facts))
            would_fit = "; or ".join(filter(None, (obstacle.would_fit, elsewhere)))
            obstacle = replace(obstacle, would_fit=would_fit)
            explained = rejection(result, self._policy, self._scope, obstacle)
        message = explanation_to_message(explained)
        if level >= pb.EXPLAIN_LEVEL_FULL:
            add_merges(message, result.merges)
            message.allocate_calls.extend(notes.allocate_calls)
            message.plugin_calls.extend(notes.plugin_calls)
        return message

    def _refused_merge(self, result: ScopeResult) -> MergeRecord | None:
        """The merge that the policy refused; None where an allocation failed."""
        record = result.merges[-1] if result.merges else None
        refused = record is not None and not record.admitted and self._numa is not None
        return record if refused else None

    def _obstacle(
        self, pod: Pod, result: ScopeResult, notes: AdmissionNotes, found: Sequence[Found]
    ) -> Obstacle:
        if result.keeps_nothing:
            return fault_obstacle(result.message)
        merge = self._refused_merge(result)
        if merge is not None and self._numa is not None:
            return merge_obstacle(merge, self._policy, self._numa, pod, found)
        call = notes.allocate_calls[-1]
        failed_plugin = next(
            (c.resource for c in notes.plugin_calls[-1:] if c.error and c.error in call.error), ""
        )
        return allocation_obstacle(
            provider=call.provider,
            container=call.container,
            message=call.error,
            plugin=failed_plugin,
            record=result.merges[-1] if result.merges else None,
            policy=self._policy,
            numa=self._numa,
            pod=pod,
            found=found,
        )


def add_merges(message: pb.Explanation, merges: Sequence[MergeRecord]) -> None:
    """Add the merges in order: the last one, which decided a refusal, and as many before it as fit.

    Where some are left out the summary says so.
    """
    if not merges:
        return
    last = merge_to_message(merges[-1])
    room = MOST_MERGE_BYTES - last.ByteSize()
    for record in merges[:-1]:
        merge = merge_to_message(record)
        room -= merge.ByteSize()
        if room < 0:
            break
        message.merges.append(merge)
    message.merges.append(last)
    shown = len(message.merges)
    if shown < len(merges):
        message.summary += (
            f" (Of {len(merges)} merges the first {shown - 1} and the last are shown: all of them "
            "would be too long for an answer.)"
        )
