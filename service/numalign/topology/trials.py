"""Whether a pod that was refused would fit under another policy or scope: tried, and undone.

Separate from the decision, which is over by then: these are dry runs under a policy that refuses
less, and under the scope that is not configured, over the same books, so what they say is what
would have been decided. They are made only for somebody who asks why the policy refused a pod.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from numalign.errors import NumalignError
from numalign.families.choices import offers_mask
from numalign.model.hint import TopologyHint
from numalign.model.ids import AdmissionId
from numalign.rpc.deadline import remaining
from numalign.store.carried import carried_through
from numalign.telemetry.logs import get_logger
from numalign.topology.decision import AdmitCall, Decider
from numalign.topology.explain_merge import mask_words
from numalign.topology.explain_words import listed
from numalign.topology.scope import Scope, ScopeResult
from numalign.topology.scope_pod import NAME as POD
from numalign.v1 import hint_provider_pb2 as hp

LONGEST_SECONDS = 1.0
"""How long all trials may take together: others wait for the node's turn meanwhile."""

_MOST_CONTAINERS_NAMED = 4

_log = get_logger("trials")


async def fits_elsewhere(
    decider: Decider, call: AdmitCall, next_id: Callable[[], AdmissionId]
) -> str:
    """As part of a sentence, what would have taken the pod; empty if nothing would.

    The strictest of the laxer policies that would have, and the other scope. The caller holds the
    node's turn, and has no admission open; each trial is made under an id of its own.
    """
    left = remaining()
    seconds = LONGEST_SECONDS if left is None else min(LONGEST_SECONDS, left / 2)
    words = []
    try:
        async with asyncio.timeout(seconds):
            for name, scope in decider.parts.laxer.items():
                result = await _tried(decider, scope, call, next_id())
                if result.admitted:
                    words.append(f"policy {name} would accept {_taken(scope, result)}")
                    break
            other = decider.parts.other_scope
            if other is not None and len(call.pod.all_containers()) > 1:
                result = await _tried(decider, other, call, next_id())
                if result.admitted:
                    words.append(f"scope {other.name} would accept {_taken(other, result)}")
    except (NumalignError, TimeoutError) as error:
        _log.debug("not known whether something else would do", error=str(error))
    return "; or ".join(words)


async def _tried(
    decider: Decider, scope: Scope, call: AdmitCall, admission_id: AdmissionId
) -> ScopeResult:
    """What `scope` decides; whatever the providers have taken for it is given back."""
    tried = replace(call, dry_run=True)
    fanout = decider.ask(tried, admission_id)
    try:
        return await scope.admit(call.pod, fanout)
    finally:
        await carried_through(decider.abort(tried, fanout, admission_id, hp.LEFTOVERS_DROP))


def _taken(scope: Scope, result: ScopeResult) -> str:
    """`{0} for all containers`, and what would not all come from there."""
    places = [(name, _place(hint)) for name, hint in result.affinities.items()]
    if len(places) == 1:
        words = places[0][1]
    elif scope.name == POD:
        words = f"{places[0][1]} for all containers"
    else:
        named = [f'{at} for container "{name}"' for name, at in places[:_MOST_CONTAINERS_NAMED]]
        if len(places) > _MOST_CONTAINERS_NAMED:
            named.append(f"{len(places) - _MOST_CONTAINERS_NAMED} more")
        words = listed(named)
    astray = _astray(result)
    return f"{words}, with {listed(astray)} from other nodes" if astray else words


def _astray(result: ScopeResult) -> list[str]:
    """The resources that had no hint for the nodes that were chosen: best-effort takes them so."""
    names = {
        resource: None
        for merge in result.merges
        if merge.best.mask is not None
        for answer in merge.answers
        for resource, hints in (answer.hints or {}).items()
        if hints is not None and not offers_mask(hints, merge.best.mask)
    }
    return list(names)


def _place(hint: TopologyHint) -> str:
    return mask_words(hint.mask)
