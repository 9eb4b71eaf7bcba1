"""Says how a decision was reached, while the providers still hold it tentatively.

Separate from the explanations themselves, which are pure: this one asks the providers for
the facts behind a refusal, and only then, so that an admission costs nothing more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from numalign.model.pod import Container, Pod
from numalign.topology.explain_failure import allocation_obstacle
from numalign.topology.explain_refusal import fault_obstacle, merge_obstacle
from numalign.topology.explain_summary import admission, rejection
from numalign.topology.explanation import Obstacle, container_of
from numalign.topology.messages import (
    explanation_to_message,
    found_from_messages,
    merge_to_message,
)
from numalign.topology.numa_info import NumaInfo
from numalign.topology.policy import Policy
from numalign.topology.scope import ScopeResult
from numalign.v1 import types_pb2 as pb


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
        if result.admitted:
            explained = admission(result, self._policy, self._numa, self._scope)
        else:
            obstacle = await self._obstacle(pod, result, notes)
            explained = rejection(result, self._policy, self._scope, obstacle)
        message = explanation_to_message(explained)
        if level >= pb.EXPLAIN_LEVEL_FULL:
            message.merges.extend(map(merge_to_message, result.merges))
            message.allocate_calls.extend(notes.allocate_calls)
            message.plugin_calls.extend(notes.plugin_calls)
        return message

    async def _obstacle(self, pod: Pod, result: ScopeResult, notes: AdmissionNotes) -> Obstacle:
        record = result.merges[-1] if result.merges else None
        if result.keeps_nothing:
            return fault_obstacle(result.message)
        if record is not None and not record.admitted and self._numa is not None:
            facts = await notes.facts(pod, container_of(pod, record.container))
            found = found_from_messages(facts)
            return merge_obstacle(record, self._policy, self._numa, pod, found)
        call = notes.allocate_calls[-1]
        facts = await notes.facts(pod, container_of(pod, call.container))
        failed_plugin = next(
            (c.resource for c in notes.plugin_calls[-1:] if c.error and c.error in call.error), ""
        )
        return allocation_obstacle(
            provider=call.provider,
            container=call.container,
            message=call.error,
            plugin=failed_plugin,
            record=record,
            policy=self._policy,
            numa=self._numa,
            pod=pod,
            found=found_from_messages(facts),
        )
