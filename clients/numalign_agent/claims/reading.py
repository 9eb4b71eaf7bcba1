"""Reading every claim that a pod leads to."""

from __future__ import annotations

import asyncio

from numalign.dra.messages import pod_claims
from numalign.dra.naming import named_claims
from numalign.dra.values import ClaimProblem
from numalign.kube.claims import refers_to_claims
from numalign.kube.core.v1 import core_pb2
from numalign.v1 import claims_pb2 as cl
from numalign_agent.claims.port import ClaimReader


async def read_claims(reader: ClaimReader, pod: core_pb2.Pod) -> list[cl.FetchedClaim]:
    """The claims of a pod, each read once.

    None for a pod that does not lead to all of its claims yet: the service says so itself, in
    the words of a kubelet.
    """
    if not refers_to_claims(pod):
        return []
    try:
        named = named_claims(pod_claims(pod.SerializeToString()))
    except ClaimProblem:
        return []
    names = dict.fromkeys(claim.name for claim in named)
    reads = (reader.read(pod.metadata.namespace, name) for name in names)
    return list(await asyncio.gather(*reads))
