"""Whether a pod that was refused would fit under the other topology scope: tried, and undone.

Separate from the decision, which is over by then: this is a dry run under the scope that is not
configured, over the same books, so what it says is what that scope would have decided. It is made
only for somebody who asks why a pod was refused.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from numalign.errors import NumalignError
from numalign.model.hint import TopologyHint
from numalign.model.ids import AdmissionId
from numalign.rpc.deadline import remaining
from numalign.store.carried import carried_through
from numalign.telemetry.logs import get_logger
from numalign.topology.decision import AdmitCall, Decider
from numalign.topology.explain_merge import mask_words
from numalign.topology.explain_summary import WOULD_FIT
from numalign.topology.explain_words import listed
from numalign.topology.scope import Scope, ScopeResult
from numalign.topology.scope_pod import NAME as POD
from numalign.v1 import hint_provider_pb2 as hp
from numalign.v1 import types_pb2 as pb

LONGEST_SECONDS = 1.0
"""How long a trial may take: others wait for the node's turn meanwhile."""

_MOST_CONTAINERS_NAMED = 4

_log = get_logger("other_scope")


async def fit_under_other_scope(
    decider: Decider, call: AdmitCall, admission_id: AdmissionId
) -> str:
    """As part of a sentence, where the other scope would have taken the pod; empty if it would not.

    The caller holds the node's turn, and has no admission open.
    """
    scope = decider.parts.other_scope
    if scope is None or len(call.pod.all_containers()) < 2:
        return ""
    tried = replace(call, dry_run=True)
    fanout = decider.ask(tried, admission_id)
    left = remaining()
    seconds = LONGEST_SECONDS if left is None else min(LONGEST_SECONDS, left / 2)
    try:
        async with asyncio.timeout(seconds):
            result = await scope.admit(call.pod, fanout)
    except (NumalignError, TimeoutError) as error:
        _log.debug("not known whether the other scope would do", error=str(error))
        return ""
    finally:
        await carried_through(decider.abort(tried, fanout, admission_id, hp.LEFTOVERS_DROP))
    return _words(scope, result) if result.admitted else ""


def add_would_fit(explanation: pb.Explanation, words: str) -> None:
    """Add to the message of a refusal that something else would have fitted; nothing, if empty."""
    if not words:
        return
    obstacle = explanation.obstacles[0]
    told = f"{WOULD_FIT}: {obstacle.would_fit}"
    if obstacle.would_fit and told in explanation.summary:
        explanation.summary = explanation.summary.replace(told, f"{told}; or {words}")
    else:
        explanation.summary += f" {WOULD_FIT}: {words}."
    obstacle.would_fit = "; or ".join(filter(None, (obstacle.would_fit, words)))


def _words(scope: Scope, result: ScopeResult) -> str:
    """`scope pod would accept {0} for all containers`."""
    accepted = f"scope {scope.name} would accept"
    places = [(name, _place(hint)) for name, hint in result.affinities.items()]
    if scope.name == POD:
        return f"{accepted} {places[0][1]} for all containers"
    named = [f'{place} for container "{name}"' for name, place in places[:_MOST_CONTAINERS_NAMED]]
    if len(places) > _MOST_CONTAINERS_NAMED:
        named.append(f"{len(places) - _MOST_CONTAINERS_NAMED} more")
    return f"{accepted} {listed(named)}"


def _place(hint: TopologyHint) -> str:
    return mask_words(hint.mask)
